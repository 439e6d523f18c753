//! Affinity and anti-affinity terms of pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::Value;

use kube_test_control_plane_api::members::{list, list_at, text};
use kube_test_control_plane_api::object::Object;

/// All existing namespaces with their labels.
pub(super) type Namespaces = [Arc<Object>];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A required term of a pod: matching pods and a topology.
#[derive(Clone, Debug)]
pub(super) struct Term {
    selector: Selector,
    /// `None` for all namespaces.
    namespaces: Option<BTreeSet<String>>,
    /// The topology label.
    pub(super) topology: String,
    /// Unique identity of the term.
    pub(super) identity: String,
}

impl Term {
    /// Returns a pod's required anti-affinity terms.
    pub(super) fn anti_affinity(pod: &Value, namespace: &str, all: &Namespaces) -> Vec<Self> {
        Self::of(pod, "podAntiAffinity", namespace, all)
    }

    /// Returns a pod's required affinity terms.
    pub(super) fn affinity(pod: &Value, namespace: &str, all: &Namespaces) -> Vec<Self> {
        Self::of(pod, "podAffinity", namespace, all)
    }

    fn of(pod: &Value, kind: &str, namespace: &str, all: &Namespaces) -> Vec<Self> {
        list_at(pod, &format!("/spec/affinity/{kind}/{REQUIRED}"))
            .filter_map(|term| Self::read(term, namespace, all))
            .collect()
    }

    fn read(term: &Value, namespace: &str, all: &Namespaces) -> Option<Self> {
        let topology = text(term, "topologyKey").to_owned();
        let mut namespaces: BTreeSet<String> = list(term, "namespaces")
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let by_label = term.get("namespaceSelector").filter(|s| !s.is_null());
        let by_label = by_label.map(selector);
        if let Some(by_label) = &by_label {
            let by_label = by_label.as_ref()?;
            let found = all.iter().filter(|n| by_label.matches(&n.labels));
            namespaces.extend(found.map(|n| n.key.name.to_string()));
        } else if namespaces.is_empty() {
            namespaces.insert(namespace.to_owned());
        }
        let is_every = term.pointer("/namespaceSelector") == Some(&serde_json::json!({}));
        Some(Self {
            selector: selector(term.get("labelSelector")?)?,
            identity: format!("{namespace}/{term}"),
            namespaces: (!is_every).then_some(namespaces),
            topology,
        })
    }

    /// Reports whether the term matches a pod.
    pub(super) fn is_about(&self, namespace: &str, labels: &Labels) -> bool {
        let names = self.namespaces.as_ref();
        names.is_none_or(|names| names.contains(namespace)) && self.selector.matches(labels)
    }
}

/// Parses a label selector in JSON.
pub(super) fn selector(value: &Value) -> Option<Selector> {
    let selector: LabelSelector = serde_json::from_value(value.clone()).ok()?;
    Selector::from_label_selector(Some(&selector)).ok()
}
