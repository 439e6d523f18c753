//! Affinity and anti-affinity to assigned pods.

use std::collections::BTreeSet;

use kube_test_control_plane_api::object::Object;
use serde_json::Value;

use super::cache::{Cache, Node};
use super::spread::{Constraint, Spread};
use super::term::{Namespaces, Term};

/// A node label with its value.
type TopologyPair = (String, String);

/// Effect of assigned pods on the placement of one pod.
#[derive(Debug)]
pub(super) struct PodContext {
    spreads: Vec<Spread>,
    /// The topology labels of the pod's affinity.
    near: Vec<String>,
    /// Topology pairs with pods that the affinity requires; `None` if the pod may be the first.
    wanted: Option<BTreeSet<TopologyPair>>,
    /// Topology pairs with pods that the pod's anti-affinity excludes.
    avoided: BTreeSet<TopologyPair>,
    /// Topology pairs whose pods exclude this pod by their own anti-affinity.
    forbidden: BTreeSet<TopologyPair>,
}

impl PodContext {
    /// Evaluates the assigned pods for a pod.
    pub(super) fn of(cache: &Cache, object: &Object, pod: &Value, all: &Namespaces) -> Self {
        let namespace = &*object.key.namespace;
        let affinity = Term::affinity(pod, namespace, all);
        let pair = |topology: &str, node: &str| {
            let value = cache.node(node)?.label(topology)?;
            Some((topology.to_owned(), value.to_owned()))
        };
        let mut wanted = BTreeSet::new();
        if !affinity.is_empty() {
            for (key, placed) in cache.pods() {
                let is_wanted = |t: &Term| t.is_about(&key.namespace, &placed.labels);
                if affinity.iter().all(is_wanted) {
                    let terms = affinity.iter();
                    wanted.extend(terms.filter_map(|t| pair(&t.topology, &placed.node)));
                }
            }
        }
        let is_own = |term: &Term| term.is_about(namespace, &object.labels);
        let is_first = wanted.is_empty() && affinity.iter().all(is_own);
        let mut avoided = BTreeSet::new();
        for term in Term::anti_affinity(pod, namespace, all) {
            let near = cache
                .pods()
                .filter(|(key, placed)| term.is_about(&key.namespace, &placed.labels));
            avoided.extend(near.filter_map(|(_, placed)| pair(&term.topology, &placed.node)));
        }
        let mut forbidden = BTreeSet::new();
        for (term, nodes) in cache.guards() {
            if term.is_about(namespace, &object.labels) {
                forbidden.extend(nodes.filter_map(|node| pair(&term.topology, node)));
            }
        }
        Self {
            spreads: spreads(cache, object, pod),
            near: affinity.into_iter().map(|term| term.topology).collect(),
            wanted: (!is_first).then_some(wanted),
            avoided,
            forbidden,
        }
    }

    /// Returns the reason against a node, if any.
    pub(super) fn refuse(&self, node: &Node) -> Option<&'static str> {
        let is_there = |(key, value): &TopologyPair| node.label(key) == Some(value);
        let is_near = |topology: &String| match (node.label(topology), &self.wanted) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(value), Some(wanted)) => wanted.contains(&(topology.clone(), value.to_owned())),
        };
        if let Some(reason) = self.spreads.iter().find_map(|spread| spread.refuse(node)) {
            return Some(reason);
        }
        if !self.near.iter().all(is_near) {
            return Some("node(s) didn't match pod affinity rules");
        }
        if self.avoided.iter().any(is_there) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        let refused = self.forbidden.iter().any(is_there);
        refused.then_some("node(s) didn't satisfy existing pods anti-affinity rules")
    }
}

fn spreads(cache: &Cache, object: &Object, pod: &Value) -> Vec<Spread> {
    let constraints = Constraint::of(pod, &object.labels);
    let keys: Vec<String> = constraints.iter().map(|c| c.topology.clone()).collect();
    constraints
        .into_iter()
        .map(|constraint| {
            let nodes = cache.nodes();
            let nodes = nodes.filter(|(_, n)| keys.iter().all(|key| n.label(key).is_some()));
            let there = |name: &str| cache.labels_on(name, &object.key.namespace);
            constraint.spread(pod, &object.labels, nodes, there)
        })
        .collect()
}
