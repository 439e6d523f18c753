//! The scheduler's cache of nodes and assigned pods.

use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::labels::Labels;
use kube_apimachinery::quantity::Quantity;
use kube_test_control_plane_api::object::{Key, Needs, Object};
use serde_json::{Map, Value};

use super::term::{Namespaces, Term};
use crate::nodes::{affinity, taints};
use crate::pods::HostPort;

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) labels: Map<String, Value>,
    pub(super) taints: Vec<Value>,
    cordoned: bool,
    /// Allocatable resources; `None` if the node reports none.
    room: Option<Needs>,
    pods_max: Option<i64>,
    used: Needs,
    /// The pods on it.
    pods: BTreeSet<Key>,
    /// The host ports in use.
    ports: Vec<HostPort>,
    /// True if the node is registered; pods may also be assigned to an unregistered node.
    exists: bool,
}

impl Node {
    /// Returns a label's value.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key)?.as_str()
    }

    /// Returns the node's own reasons against a pod; empty if there are none.
    pub(super) fn refuses(
        &self,
        name: &str,
        pod: &Value,
        (needs, ports): (&Needs, &[HostPort]),
    ) -> Vec<String> {
        let tolerates = |taint: &Value| taints::is_tolerated(pod, taint);
        let cordon = taints::new(taints::UNSCHEDULABLE, "", "NoSchedule", "");
        if self.cordoned && !tolerates(&cordon) {
            return vec!["node(s) were unschedulable".to_owned()];
        }
        let forbids = |taint: &&Value| {
            ["NoSchedule", "NoExecute"]
                .iter()
                .any(|effect| taints::has_effect(taint, effect))
                && !tolerates(taint)
        };
        if let Some(taint) = self.taints.iter().find(forbids) {
            let taint = taints::shown(taint);
            return vec![format!("node(s) had untolerated taint {taint}")];
        }
        if !affinity::wants_node(pod, &self.labels, name) {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        let is_taken = |port: &HostPort| self.ports.iter().any(|taken| taken.conflicts(port));
        if ports.iter().any(is_taken) {
            let reason = "node(s) didn't have free ports for the requested pod ports";
            return vec![reason.to_owned()];
        }
        let mut reasons = Vec::new();
        let pods = i64::try_from(self.pods.len()).unwrap_or(i64::MAX);
        if self.pods_max.is_some_and(|max| pods >= max) {
            reasons.push("Too many pods".to_owned());
        }
        if let Some(room) = &self.room {
            let lacking = needs.lacking(room, &self.used);
            reasons.extend(lacking.map(|name| format!("Insufficient {name}")));
        }
        reasons
    }

    /// Returns the node's score, lower is better: untolerated `PreferNoSchedule` taints, then pods.
    pub(super) fn score(&self, pod: &Value) -> (usize, usize) {
        let avoided = self.taints.iter().filter(|taint| {
            taints::has_effect(taint, "PreferNoSchedule") && !taints::is_tolerated(pod, taint)
        });
        (avoided.count(), self.pods.len())
    }
}

/// An assigned pod.
#[derive(Debug)]
pub(super) struct Placed {
    uid: Box<str>,
    pub(super) labels: Labels,
    pub(super) node: String,
    deleting: bool,
    needs: Needs,
    ports: Vec<HostPort>,
    /// Identities of its required anti-affinity terms.
    guards: Vec<String>,
}

/// A required anti-affinity term, with the number of its pods on each node.
#[derive(Debug)]
struct Guard {
    term: Term,
    nodes: BTreeMap<String, usize>,
}

/// Nodes and assigned pods.
#[derive(Debug, Default)]
pub(super) struct Cache {
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<Key, Placed>,
    /// By the identity of the term, which the pods of a set share.
    guards: BTreeMap<String, Guard>,
}

impl Cache {
    /// Returns the registered nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        let nodes = self.nodes.iter().filter(|(_, node)| node.exists);
        nodes.map(|(name, node)| (name.as_str(), node))
    }

    /// Returns a node, registered or not.
    pub(super) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// Returns the assigned pods.
    pub(super) fn pods(&self) -> impl Iterator<Item = (&Key, &Placed)> {
        self.pods.iter()
    }

    /// Returns the required anti-affinity terms of assigned pods, with their nodes.
    pub(super) fn guards(&self) -> impl Iterator<Item = (&Term, impl Iterator<Item = &str>)> {
        self.guards
            .values()
            .map(|guard| (&guard.term, guard.nodes.keys().map(String::as_str)))
    }

    /// Returns the labels of a node's pods in a namespace, except terminating ones.
    pub(super) fn labels_on(&self, node: &str, namespace: &str) -> Vec<&Labels> {
        let keys = self.nodes.get(node).map(|node| &node.pods);
        let keys = keys.into_iter().flatten();
        keys.filter(|key| *key.namespace == *namespace)
            .filter_map(|key| self.pods.get(key))
            .filter(|placed| !placed.deleting)
            .map(|placed| &placed.labels)
            .collect()
    }

    /// Updates or removes a node. Returns true if the change may make a pod schedulable.
    pub(super) fn set_node(&mut self, name: &str, value: Option<&Value>) -> bool {
        let node = self.nodes.entry(name.to_owned()).or_default();
        let Some(value) = value else {
            node.exists = false;
            return false;
        };
        let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.cloned().unwrap_or_default();
        let found: Vec<Value> = taints::of_node(value).cloned().collect();
        let cordoned = value.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
        let room = value.pointer("/status/allocatable");
        let pods_max = room
            .and_then(|room| room.get("pods")?.as_str()?.parse::<Quantity>().ok())
            .map(|pods| pods.value());
        let room = room.map(|room| Needs::read(Some(room)));
        let is_other = !node.exists
            || (&node.labels, &node.taints, node.cordoned) != (&labels, &found, cordoned)
            || (&node.room, node.pods_max) != (&room, pods_max);
        node.exists = true;
        node.labels = labels;
        node.taints = found;
        node.cordoned = cordoned;
        node.room = room;
        node.pods_max = pods_max;
        is_other
    }

    /// Reports whether a pod is in the cache, and updates its deletion state.
    pub(super) fn knows(&mut self, pod: &Object) -> bool {
        let placed = self.pods.get_mut(&pod.key);
        let Some(placed) = placed.filter(|placed| placed.uid == pod.uid) else {
            return false;
        };
        placed.deleting = pod.deleting;
        true
    }

    /// Adds a pod to a node.
    pub(super) fn assign(&mut self, object: &Object, pod: &Value, name: &str, all: &Namespaces) {
        if self.knows(object) {
            return;
        }
        self.remove(&object.key);
        let needs = Needs::of(pod);
        let ports = HostPort::of(pod);
        let node = self.nodes.entry(name.to_owned()).or_default();
        node.pods.insert(object.key.clone());
        node.used.add(&needs);
        node.ports.extend(ports.iter().cloned());
        let mut guards = Vec::new();
        for term in Term::anti_affinity(pod, &object.key.namespace, all) {
            let identity = term.identity.clone();
            let guard = self.guards.entry(identity.clone()).or_insert(Guard {
                term,
                nodes: BTreeMap::new(),
            });
            *guard.nodes.entry(name.to_owned()).or_default() += 1;
            guards.push(identity);
        }
        let placed = Placed {
            uid: object.uid.clone(),
            labels: object.labels.clone(),
            node: name.to_owned(),
            deleting: object.deleting,
            needs,
            ports,
            guards,
        };
        self.pods.insert(object.key.clone(), placed);
    }

    /// Removes a pod. Returns true if it was in the cache.
    pub(super) fn release(&mut self, pod: &Object) -> bool {
        self.knows(pod) && self.remove(&pod.key)
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(placed) = self.pods.remove(key) else {
            return false;
        };
        for identity in &placed.guards {
            if let Some(guard) = self.guards.get_mut(identity)
                && let Some(count) = guard.nodes.get_mut(&placed.node)
            {
                *count -= 1;
                if *count == 0 {
                    guard.nodes.remove(&placed.node);
                }
                if guard.nodes.is_empty() {
                    self.guards.remove(identity);
                }
            }
        }
        if let Some(node) = self.nodes.get_mut(&placed.node) {
            node.pods.remove(key);
            node.used.subtract(&placed.needs);
            for port in &placed.ports {
                if let Some(at) = node.ports.iter().position(|taken| taken == port) {
                    node.ports.swap_remove(at);
                }
            }
        }
        true
    }
}
