//! Topology spread constraints.

use std::collections::BTreeMap;

use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::Selector;
use kube_test_control_plane_api::members::{list, list_at, text};
use serde_json::{Value, json};

use super::cache::Node;
use super::term::selector;
use crate::nodes::{affinity, taints};

/// A `DoNotSchedule` constraint.
#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) topology: String,
    selector: Option<Selector>,
    max_skew: i64,
    domains_min: usize,
    honors_affinity: bool,
    honors_taints: bool,
}

/// Number of matching pods by the value of the topology label.
#[derive(Debug)]
pub(super) struct Spread {
    constraint: Constraint,
    counts: BTreeMap<String, i64>,
    /// 1 if the pod matches its own selector, else 0.
    own: i64,
}

impl Constraint {
    /// Returns the constraints of a pod with these labels.
    pub(super) fn of(pod: &Value, labels: &Labels) -> Vec<Self> {
        list_at(pod, "/spec/topologySpreadConstraints")
            .filter(|constraint| text(constraint, "whenUnsatisfiable") == "DoNotSchedule")
            .map(|constraint| Self::read(constraint, labels))
            .collect()
    }

    fn read(constraint: &Value, labels: &Labels) -> Self {
        let mut wanted = constraint.get("labelSelector").cloned().unwrap_or_default();
        for key in list(constraint, "matchLabelKeys").filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                wanted["matchLabels"][key] = json!(value);
            }
        }
        let number = |member: &str| constraint.get(member).and_then(Value::as_i64);
        Self {
            topology: text(constraint, "topologyKey").to_owned(),
            selector: Some(&wanted).filter(|w| !w.is_null()).and_then(selector),
            max_skew: number("maxSkew").unwrap_or(1),
            domains_min: number("minDomains")
                .and_then(|number| usize::try_from(number).ok())
                .unwrap_or(1),
            honors_affinity: text(constraint, "nodeAffinityPolicy") != "Ignore",
            honors_taints: text(constraint, "nodeTaintsPolicy") == "Honor",
        }
    }

    /// Reports whether a pod with these labels counts.
    fn counts(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|s| s.matches(labels))
    }

    /// Reports whether the pods of a node count.
    fn takes(&self, name: &str, node: &Node, pod: &Value) -> bool {
        let tolerates = || {
            let mut taints = node.taints.iter().filter(|taint| {
                let effects = ["NoSchedule", "NoExecute"];
                effects.iter().any(|e| taints::has_effect(taint, e))
            });
            taints.all(|taint| taints::is_tolerated(pod, taint))
        };
        (!self.honors_affinity || affinity::wants_node(pod, &node.labels, name))
            && (!self.honors_taints || tolerates())
    }

    /// Counts the pods on nodes with all topology labels of the pod's constraints.
    pub(super) fn spread<'a>(
        self,
        pod: &Value,
        own: &Labels,
        nodes: impl Iterator<Item = (&'a str, &'a Node)>,
        pods_on: impl Fn(&str) -> Vec<&'a Labels>,
    ) -> Spread {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (name, node) in nodes.filter(|(name, node)| self.takes(name, node, pod)) {
            let Some(value) = node.label(&self.topology) else {
                continue;
            };
            let found = pods_on(name)
                .into_iter()
                .filter(|labels| self.counts(labels));
            let found = i64::try_from(found.count()).unwrap_or(i64::MAX);
            *counts.entry(value.to_owned()).or_default() += found;
        }
        Spread {
            own: i64::from(self.counts(own)),
            constraint: self,
            counts,
        }
    }
}

impl Spread {
    /// Returns the reason against a node, if any.
    pub(super) fn refuse(&self, node: &Node) -> Option<&'static str> {
        let Some(value) = node.label(&self.constraint.topology) else {
            return Some(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            );
        };
        let least = self.counts.values().min().copied().unwrap_or(0);
        let is_few = self.counts.len() < self.constraint.domains_min;
        let least = if is_few { 0 } else { least };
        let there = self.counts.get(value).copied().unwrap_or(0);
        (there + self.own - least > self.constraint.max_skew)
            .then_some("node(s) didn't match pod topology spread constraints")
    }
}
