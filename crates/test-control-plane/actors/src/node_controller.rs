//! The node controller: detects silent nodes, taints them, and evicts pods that don't tolerate a
//! node's taints.

mod eviction;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt;
use kube_test_control_plane_api::members::list_at;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::ActorClient;
use super::nodes::taints;
use super::pods::PodFields;
use super::runner::{Actor, Agenda, Work};
use eviction::Evictions;

/// Settings of the node controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeControllerConfig {
    /// Time until a silent node becomes unreachable.
    pub grace: Duration,
}

impl Default for NodeControllerConfig {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(50),
        }
    }
}

impl NodeControllerConfig {
    setters! {
        /// Sets the time until a silent node becomes unreachable.
        grace: Duration,
    }
}

/// A test's order to the node controller.
#[derive(Debug)]
pub(super) enum NodeOrder {
    /// A node stops reporting.
    Lose { node: Key },
    /// A node reports again.
    Heal { node: Key },
}

/// The node controller.
#[derive(Debug)]
pub(super) struct NodeController {
    client: ActorClient,
    config: NodeControllerConfig,
    fields: PodFields,
    /// Silent nodes and the start of their silence.
    silent: BTreeMap<Key, Instant>,
    /// Unready nodes whose pods have been marked unready.
    unready: BTreeSet<Key>,
    /// The pods on each node.
    on_node: BTreeMap<Box<str>, BTreeSet<Key>>,
    evictions: Evictions,
}

impl NodeController {
    pub(super) fn new(client: ActorClient, config: NodeControllerConfig) -> Self {
        Self {
            client,
            config,
            fields: PodFields::new(),
            silent: BTreeMap::new(),
            unready: BTreeSet::new(),
            on_node: BTreeMap::new(),
            evictions: Evictions::default(),
        }
    }

    fn pods_on(&self, node: &str) -> Vec<Key> {
        let pods = self.on_node.get(node).into_iter().flatten();
        pods.cloned().collect()
    }

    /// Updates a node's conditions and taints, one step per call.
    fn sync_node(&mut self, object: &Object, agenda: &mut Agenda) -> Option<Work<Done>> {
        let node = object.value();
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        let now = self.client.server.now_text();
        if self.is_given_up(object) && ready(&node) != "Unknown" {
            let status = json!({"conditions": unknown(&node, &now)});
            let patched = async move { client.patch_status(&key, &uid, &status).await };
            return Some(patched.map(|done| done.then_some(Done::Written)).boxed());
        }
        if ready(&node) == "True" || !has_ready(&node) {
            self.unready.remove(&key);
        } else if !self.unready.contains(&key) {
            let marked = mark_unready(client, self.pods_on(&key.name));
            return Some(marked.map(|done| done.then_some(Done::Marked)).boxed());
        }
        let taints = wanted_taints(&node, &now);
        let found: Vec<&Value> = taints::of_node(&node).collect();
        if taints.iter().collect::<Vec<_>>() != found {
            let patch = json!({
                "metadata": {"resourceVersion": object.resource_version.to_string()},
                "spec": {"taints": taints},
            });
            let patched = async move { client.patch(&key, &uid, patch).await };
            return Some(patched.map(|done| done.then_some(Done::Written)).boxed());
        }
        let found = found.into_iter().cloned().collect();
        if self.evictions.taint(&object.key.name, found) {
            for pod in self.pods_on(&object.key.name) {
                agenda.now(&pod);
            }
        }
        None
    }

    fn is_given_up(&self, node: &Object) -> bool {
        let since = self.silent.get(&node.key);
        since.is_some_and(|since| since.elapsed() >= self.config.grace)
    }

    fn evict(&mut self, object: &Object, agenda: &mut Agenda) -> Option<Work<Done>> {
        let (key, uid) = (object.key.clone(), object.uid.clone());
        let node = self.fields.node(object);
        let pod = object.value();
        let due = self.evictions.due(&key, node, &pod)?;
        if due > Instant::now() {
            agenda.at(&key, due);
            return None;
        }
        let status = json!({"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "observedGeneration": pod.pointer("/metadata/generation"),
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastProbeTime": null,
            "lastTransitionTime": self.client.server.now_text(),
        }]});
        let client = self.client.clone();
        Some(
            async move {
                let done = client.patch_status(&key, &uid, &status).await
                    && client.delete((&key, &uid), &json!({})).await;
                done.then_some(Done::Written)
            }
            .boxed(),
        )
    }

    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        let node = self.fields.node(object);
        if node.is_empty() {
            return;
        }
        if entry.change == Change::Deleted || object.deleting {
            self.evictions.forget(&object.key);
        }
        if entry.change == Change::Deleted {
            if let Some(pods) = self.on_node.get_mut(node) {
                pods.remove(&object.key);
            }
            return;
        }
        let pods = self.on_node.entry(node.into()).or_default();
        pods.insert(object.key.clone());
        if !object.deleting && self.evictions.is_tainted(node) {
            agenda.now(&object.key);
        }
    }
}

impl Actor for NodeController {
    type Order = NodeOrder;
    type Done = Done;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match &*key.storage {
            "pods" => self.note_pod(entry, agenda),
            "nodes" if entry.change == Change::Deleted => {
                self.silent.remove(key);
                self.unready.remove(key);
                self.evictions.taint(&key.name, Vec::new());
            }
            "nodes" => agenda.now(key),
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Done>> {
        let object = self.client.get(key)?;
        if &*key.storage == "nodes" {
            self.sync_node(&object, agenda)
        } else if object.deleting {
            None
        } else {
            self.evict(&object, agenda)
        }
    }

    fn done(&mut self, key: &Key, done: Done, agenda: &mut Agenda) {
        match done {
            Done::Marked => {
                self.unready.insert(key.clone());
                agenda.now(key);
            }
            Done::Written => {}
        }
    }

    fn obey(&mut self, order: NodeOrder, agenda: &mut Agenda) {
        match order {
            NodeOrder::Lose { node } => {
                self.silent.entry(node.clone()).or_insert_with(Instant::now);
                agenda.after(&node, self.config.grace);
            }
            NodeOrder::Heal { node } => {
                self.silent.remove(&node);
            }
        }
    }

    fn reset(&mut self) {
        self.on_node.clear();
    }
}

/// Completed work for a node or a pod.
#[derive(Debug)]
pub(super) enum Done {
    /// The pods of the unready node were marked unready.
    Marked,
    /// The node's status was written, or the pod was deleted from it.
    Written,
}

/// Marks pods unready.
async fn mark_unready(client: ActorClient, pods: Vec<Key>) -> bool {
    let mut done = true;
    for key in pods {
        let Some(object) = client.get(&key) else {
            continue;
        };
        if ready(&object.value()) != "True" {
            continue;
        }
        let status = json!({"conditions": [{
            "type": "Ready",
            "status": "False",
            "lastTransitionTime": client.server.now_text(),
        }]});
        done &= client.patch_status(&key, &object.uid, &status).await;
    }
    done
}

/// Returns the ready condition of a node or a pod: `True`, `False` or `Unknown`.
pub(super) fn ready(object: &Value) -> &str {
    conditions(object)
        .find(|condition| condition["type"] == "Ready")
        .and_then(|condition| condition.get("status")?.as_str())
        .unwrap_or("Unknown")
}

fn has_ready(object: &Value) -> bool {
    conditions(object).any(|condition| condition["type"] == "Ready")
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    list_at(object, "/status/conditions")
}

/// Returns the conditions of an unreachable node.
fn unknown(node: &Value, now: &str) -> Vec<Value> {
    let reported = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    conditions(node)
        .filter_map(|condition| condition.get("type")?.as_str())
        .filter(|name| reported.contains(name))
        .map(|name| {
            json!({
                "type": name,
                "status": "Unknown",
                "lastTransitionTime": now,
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
            })
        })
        .collect()
}

/// Returns the desired taints of a node: its condition taints, and those added by others.
fn wanted_taints(node: &Value, now: &str) -> Vec<Value> {
    let is_cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    let state = match ready(node) {
        _ if !has_ready(node) => None,
        "False" => Some(taints::NOT_READY),
        "Unknown" => Some(taints::UNREACHABLE),
        _ => None,
    };
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    wanted.extend(is_cordoned.then_some((taints::UNSCHEDULABLE, "NoSchedule")));
    wanted.extend(state.map(|key| (key, "NoSchedule")));
    wanted.extend(state.map(|key| (key, "NoExecute")));
    let own = [
        (taints::UNSCHEDULABLE, "NoSchedule"),
        (taints::NOT_READY, "NoSchedule"),
        (taints::NOT_READY, "NoExecute"),
        (taints::UNREACHABLE, "NoSchedule"),
        (taints::UNREACHABLE, "NoExecute"),
    ];
    let mut all: Vec<Value> = taints::of_node(node)
        .filter(|taint| {
            let is = |(key, effect): &(&str, &str)| taints::is(taint, key, effect);
            !own.iter().any(is) || wanted.iter().any(is)
        })
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !all.iter().any(|taint| taints::is(taint, key, effect)) {
            all.push(taints::new(key, "", effect, now));
        }
    }
    all
}
