//! Pods that keep others away from where they are.

use std::collections::BTreeSet;

use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::{Map, Value};

use super::cache::{Needs, Node};

/// A pod on its node.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) uid: Box<str>,
    pub(super) labels: Labels,
    pub(super) node: String,
    pub(super) needs: Needs,
}

/// One required term of a pod's anti-affinity.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    selector: Selector,
    /// Empty for every namespace.
    namespaces: BTreeSet<String>,
    topology: String,
}

impl Guard {
    /// The terms of a pod.
    pub(super) fn of(pod: &Value, namespace: &str) -> Vec<Self> {
        let pointer =
            "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        let terms = pod.pointer(pointer).and_then(Value::as_array);
        terms
            .into_iter()
            .flatten()
            .filter_map(|term| Self::read(term, namespace))
            .collect()
    }

    fn read(term: &Value, namespace: &str) -> Option<Self> {
        let selector: LabelSelector =
            serde_json::from_value(term.get("labelSelector")?.clone()).ok()?;
        let selector = Selector::from_label_selector(Some(&selector)).ok()?;
        let named = term.get("namespaces").and_then(Value::as_array);
        let mut namespaces: BTreeSet<String> = named
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let by_label = term.get("namespaceSelector").filter(|s| !s.is_null());
        if namespaces.is_empty() && by_label.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Some(Self {
            selector,
            namespaces,
            topology: term.get("topologyKey")?.as_str()?.to_owned(),
        })
    }

    /// Whether the term is about a pod.
    pub(super) fn keeps_away(&self, namespace: &str, labels: &Labels) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(namespace))
            && self.selector.matches(labels)
    }

    /// The label of nodes that tells what is near.
    pub(super) fn topology(&self) -> &str {
        &self.topology
    }
}

/// Where a pod can't go: labels of nodes with their values.
#[derive(Debug, Default)]
pub(super) struct Excluded {
    places: BTreeSet<(String, String)>,
    /// Those that pods which are there keep it away from.
    by_others: BTreeSet<(String, String)>,
}

impl Excluded {
    pub(super) fn add(
        &mut self,
        topology: &str,
        labels: Option<&Map<String, Value>>,
        by_others: bool,
    ) {
        let value = labels.and_then(|labels| labels.get(topology)?.as_str());
        let Some(value) = value else {
            return;
        };
        let place = (topology.to_owned(), value.to_owned());
        if by_others {
            self.by_others.insert(place);
        } else {
            self.places.insert(place);
        }
    }

    /// Why a pod can't go to a node.
    pub(super) fn refuse(&self, node: &Node) -> Option<String> {
        let is_there = |(key, value): &(String, String)| {
            node.labels.get(key).and_then(Value::as_str) == Some(value)
        };
        if self.by_others.iter().any(is_there) {
            let reason = "node(s) didn't satisfy existing pods anti-affinity rules";
            return Some(reason.to_owned());
        }
        let refused = self.places.iter().any(is_there);
        refused.then(|| "node(s) didn't match pod anti-affinity rules".to_owned())
    }
}
