//! What the scheduler knows of nodes and of the pods on them.

use std::collections::BTreeMap;

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use super::anti_affinity::{Excluded, Guard, Placed};
use crate::actors::{affinity, taints};
use crate::object::{Key, Object};

/// Room on a node, or what a pod takes of it: CPU in thousandths, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    cpu: i64,
    memory: i64,
}

impl Needs {
    /// What a pod asks for.
    pub(super) fn of(pod: &Value) -> Self {
        let containers = |pointer: &str| {
            let list = pod.pointer(pointer).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .map(|container| Self::read(container.pointer("/resources/requests")))
        };
        let mut sum = Self::default();
        for needs in containers("/spec/containers") {
            sum = sum.plus(needs);
        }
        for needs in containers("/spec/initContainers") {
            sum.cpu = sum.cpu.max(needs.cpu);
            sum.memory = sum.memory.max(needs.memory);
        }
        sum
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_add(other.cpu),
            memory: self.memory.saturating_add(other.memory),
        }
    }

    fn read(amounts: Option<&Value>) -> Self {
        let amount =
            |name: &str| -> Option<Quantity> { amounts?.get(name)?.as_str()?.parse().ok() };
        Self {
            cpu: amount("cpu").map_or(0, |amount| amount.milli_value()),
            memory: amount("memory").map_or(0, |amount| amount.value()),
        }
    }
}

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) labels: Map<String, Value>,
    taints: Vec<Value>,
    cordoned: bool,
    /// None where the node doesn't say.
    room: Option<Needs>,
    pods_max: Option<i64>,
    used: Needs,
    pods: usize,
    /// Whether the node is registered; pods may be assigned to one that isn't.
    exists: bool,
}

impl Node {
    /// Why a pod can't go here, as far as the node itself tells.
    pub(super) fn refuses(&self, name: &str, pod: &Value, needs: &Needs) -> Option<String> {
        let tolerates = |taint: &Value| taints::is_tolerated(pod, taint);
        let cordon = taints::new(taints::UNSCHEDULABLE, "", "NoSchedule", "");
        if self.cordoned && !tolerates(&cordon) {
            return Some("node(s) were unschedulable".to_owned());
        }
        let forbids = |taint: &&Value| {
            ["NoSchedule", "NoExecute"]
                .iter()
                .any(|effect| taints::has_effect(taint, effect))
                && !tolerates(taint)
        };
        if let Some(taint) = self.taints.iter().find(forbids) {
            let taint = taints::shown(taint);
            return Some(format!("node(s) had untolerated taint {taint}"));
        }
        if !affinity::wants_node(pod, &self.labels, name) {
            let reason = "node(s) didn't match Pod's node affinity/selector";
            return Some(reason.to_owned());
        }
        let pods = i64::try_from(self.pods).unwrap_or(i64::MAX);
        if self.pods_max.is_some_and(|max| pods >= max) {
            return Some("Too many pods".to_owned());
        }
        let room = self.room?;
        if needs.cpu > 0 && self.used.plus(*needs).cpu > room.cpu {
            return Some("Insufficient cpu".to_owned());
        }
        if needs.memory > 0 && self.used.plus(*needs).memory > room.memory {
            return Some("Insufficient memory".to_owned());
        }
        None
    }

    /// How little a node is wanted: by taints that a pod would rather avoid, then by its pods.
    pub(super) fn score(&self, pod: &Value) -> (usize, usize) {
        let avoided = self.taints.iter().filter(|taint| {
            taints::has_effect(taint, "PreferNoSchedule") && !taints::is_tolerated(pod, taint)
        });
        (avoided.count(), self.pods)
    }
}

/// Nodes, and the pods on them.
#[derive(Debug, Default)]
pub(super) struct Cache {
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<Key, Placed>,
    guards: BTreeMap<Key, Vec<Guard>>,
}

impl Cache {
    /// The nodes that there are.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        let nodes = self.nodes.iter().filter(|(_, node)| node.exists);
        nodes.map(|(name, node)| (name.as_str(), node))
    }

    /// Takes note of a node, or that it is gone; whether that may help a pod.
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
            || (node.room, node.pods_max) != (room, pods_max);
        node.exists = true;
        node.labels = labels;
        node.taints = found;
        node.cordoned = cordoned;
        node.room = room;
        node.pods_max = pods_max;
        is_other
    }

    /// Whether it is known where a pod is.
    pub(super) fn knows(&self, pod: &Object) -> bool {
        let placed = self.pods.get(&pod.key);
        placed.is_some_and(|placed| placed.uid == pod.uid)
    }

    /// A pod is on a node.
    pub(super) fn assign(&mut self, object: &Object, pod: &Value, name: &str) {
        if self.knows(object) {
            return;
        }
        self.remove(&object.key);
        let needs = Needs::of(pod);
        let node = self.nodes.entry(name.to_owned()).or_default();
        node.pods += 1;
        node.used = node.used.plus(needs);
        let guards = Guard::of(pod, &object.key.namespace);
        if !guards.is_empty() {
            self.guards.insert(object.key.clone(), guards);
        }
        let placed = Placed {
            uid: object.uid.clone(),
            labels: object.labels.clone(),
            node: name.to_owned(),
            needs,
        };
        self.pods.insert(object.key.clone(), placed);
    }

    /// A pod no longer takes room; whether it did.
    pub(super) fn release(&mut self, pod: &Object) -> bool {
        self.knows(pod) && self.remove(&pod.key)
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(placed) = self.pods.remove(key) else {
            return false;
        };
        self.guards.remove(key);
        if let Some(node) = self.nodes.get_mut(&placed.node) {
            node.pods = node.pods.saturating_sub(1);
            node.used.cpu = node.used.cpu.saturating_sub(placed.needs.cpu);
            node.used.memory = node.used.memory.saturating_sub(placed.needs.memory);
        }
        true
    }

    /// Where a pod can't go because of the pods that are there.
    pub(super) fn excluded(&self, key: &Key, object: &Object, pod: &Value) -> Excluded {
        let mut excluded = Excluded::default();
        let labels = |node: &str| self.nodes.get(node).map(|node| &node.labels);
        for guard in Guard::of(pod, &key.namespace) {
            for (other, placed) in &self.pods {
                if guard.keeps_away(&other.namespace, &placed.labels) {
                    excluded.add(guard.topology(), labels(&placed.node), false);
                }
            }
        }
        for (other, guards) in &self.guards {
            let Some(placed) = self.pods.get(other) else {
                continue;
            };
            for guard in guards {
                if guard.keeps_away(&key.namespace, &object.labels) {
                    excluded.add(guard.topology(), labels(&placed.node), true);
                }
            }
        }
        excluded
    }
}
