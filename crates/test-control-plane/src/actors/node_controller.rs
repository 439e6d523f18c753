//! The node controller: notices that a node is silent, taints it, and drives pods away from nodes
//! with taints that they don't tolerate.

mod eviction;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::agenda::Agenda;
use super::client::{ActorClient, path};
use super::pods::PodFields;
use super::runner::Actor;
use super::taints;
use crate::members::list_at;
use crate::object::{Key, Object};
use crate::store::{Change, LogEntry};
use eviction::Evictions;

/// How the node controller behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeControllerConfig {
    /// How long a node may be silent.
    pub grace: Duration,
}

impl Default for NodeControllerConfig {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(50),
        }
    }
}

/// What a test tells the node controller.
#[derive(Debug)]
pub(super) enum NodeOrder {
    /// A node says nothing any more.
    Lose { node: Key },
    /// A node speaks again.
    Heal { node: Key },
}

/// The node controller.
#[derive(Debug)]
pub(super) struct NodeController {
    client: ActorClient,
    config: NodeControllerConfig,
    fields: PodFields,
    /// Since when nodes are silent.
    silent: BTreeMap<Key, Instant>,
    /// Nodes that aren't ready, whose pods have been made unready.
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

    /// Brings a node's conditions and taints up to date.
    async fn look_after(&mut self, object: &Object, agenda: &mut Agenda) -> bool {
        let node = object.value();
        if self.is_given_up(object) && ready(&node) != "Unknown" {
            let conditions = unknown(&node, &self.client.server.now_text());
            let status = json!({"conditions": conditions});
            let (key, uid) = (&object.key, &object.uid);
            return self.client.patch_status(key, uid, &status).await;
        }
        if !self.mark_unready(&object.key, &node).await {
            return false;
        }
        let taints = wanted_taints(&node, &self.client.server.now_text());
        let found: Vec<&Value> = taints::of_node(&node).collect();
        if taints.iter().collect::<Vec<_>>() != found {
            let patch = json!({
                "metadata": {"resourceVersion": object.resource_version.to_string()},
                "spec": {"taints": taints},
            });
            return self.client.patch(&object.key, &object.uid, patch).await;
        }
        let found = found.into_iter().cloned().collect();
        if self.evictions.taint(&object.key.name, found) {
            for pod in self.pods_on(&object.key.name) {
                agenda.now(&pod);
            }
        }
        true
    }

    fn is_given_up(&self, node: &Object) -> bool {
        let since = self.silent.get(&node.key);
        since.is_some_and(|since| since.elapsed() >= self.config.grace)
    }

    /// Makes the pods of a node unready once, when it has ceased to be ready itself.
    async fn mark_unready(&mut self, node: &Key, value: &Value) -> bool {
        if ready(value) == "True" || !has_ready(value) {
            self.unready.remove(node);
            return true;
        }
        if self.unready.contains(node) {
            return true;
        }
        let mut done = true;
        for key in self.pods_on(&node.name) {
            let Some(object) = self.client.get(&key) else {
                continue;
            };
            if ready(&object.value()) != "True" {
                continue;
            }
            let status = json!({"conditions": [{
                "type": "Ready",
                "status": "False",
                "lastTransitionTime": self.client.server.now_text(),
            }]});
            done &= self.client.patch_status(&key, &object.uid, &status).await;
        }
        if done {
            self.unready.insert(node.clone());
        }
        done
    }

    async fn evict(&mut self, object: &Object, agenda: &mut Agenda) -> bool {
        let key = &object.key;
        let node = self.fields.node(object);
        let pod = object.value();
        match self.evictions.due(key, node, &pod) {
            None => return true,
            Some(due) if due > Instant::now() => {
                agenda.at(key, due);
                return true;
            }
            Some(_) => {}
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
        let path = path(key);
        self.client.patch_status(key, &object.uid, &status).await
            && self.client.send(Method::DELETE, &path, &json!({})).await
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

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match key.storage {
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

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        let done = if key.storage == "nodes" {
            self.look_after(&object, agenda).await
        } else {
            object.deleting || self.evict(&object, agenda).await
        };
        if !done {
            agenda.retry(key);
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

    fn begin_again(&mut self) {
        self.on_node.clear();
    }
}

/// Whether a node or a pod is ready: `True`, `False` or `Unknown`.
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

/// The conditions of a node that says nothing any more.
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

/// The taints that a node is to have: those that say how it is, and those of others.
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
