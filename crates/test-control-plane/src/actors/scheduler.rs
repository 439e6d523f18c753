//! A minimal scheduler: pods go to the nodes in turn once their claims are bound.

use std::collections::BTreeSet;
use std::convert::Infallible;

use http::Method;
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::client::ActorClient;
use super::runner::Actor;
use super::volume_binder::claims_are_bound;
use crate::kinds::{self, Kind};
use crate::object::Key;
use crate::store::{Change, LogEntry};

/// How the scheduler behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// How many nodes there are; they are called `node-0`, `node-1` and so on.
    pub nodes: usize,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self { nodes: 3 }
    }
}

/// Registers the nodes.
pub(super) async fn create_nodes(client: &ActorClient, config: &SchedulerConfig) {
    for i in 0..config.nodes {
        let name = format!("node-{i}");
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {
                "capacity": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
                "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": {"kubeletVersion": "v1.36.2"},
            },
        });
        client.send(Method::POST, "/api/v1/nodes", &node).await;
    }
}

/// The scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    client: ActorClient,
    config: SchedulerConfig,
    waits_for_claims: bool,
    next_node: usize,
    /// Pods whose claims aren't bound yet.
    waiting: BTreeSet<Key>,
}

impl Scheduler {
    pub(super) fn new(
        client: ActorClient,
        config: SchedulerConfig,
        waits_for_claims: bool,
    ) -> Self {
        Self {
            client,
            config,
            waits_for_claims,
            next_node: 0,
            waiting: BTreeSet::new(),
        }
    }
}

/// The row of pods.
pub(super) fn pods() -> Option<&'static Kind> {
    kinds::by_storage("pods")
}

impl Actor for Scheduler {
    type Order = Infallible;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match key.storage {
            "pods" if entry.change != Change::Deleted => agenda.now(key),
            "pods" => {
                self.waiting.remove(key);
            }
            "persistentvolumeclaims" => {
                for pod in self.waiting.iter().filter(|p| p.namespace == key.namespace) {
                    agenda.now(pod);
                }
            }
            _ => {}
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        self.waiting.remove(key);
        let (Some(object), Some(pods)) = (self.client.get(key), pods()) else {
            return;
        };
        let pod = object.value();
        if object.deleting || !wants_node(&pod) || self.config.nodes == 0 {
            return;
        }
        if self.waits_for_claims && !claims_are_bound(&self.client, &pod, &key.namespace) {
            self.waiting.insert(key.clone());
            return;
        }
        let node = format!("node-{}", self.next_node % self.config.nodes);
        self.next_node += 1;
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": *key.name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("{}/binding", pods.object_path(&key.namespace, &key.name));
        if !self.client.send(Method::POST, &path, &binding).await {
            agenda.retry(key);
        }
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {}
}

fn wants_node(pod: &Value) -> bool {
    let gates = pod
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array);
    let scheduler = pod.pointer("/spec/schedulerName").and_then(Value::as_str);
    pod.pointer("/spec/nodeName")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
        && gates.is_none_or(Vec::is_empty)
        && scheduler == Some("default-scheduler")
}
