//! A minimal scheduler: pods go to the nodes in turn once their claims are bound.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::client::{ActorClient, path};
use super::pods::{Waiters, unbound_claim};
use super::runner::Actor;
use crate::object::Key;
use crate::store::{Change, LogEntry};

/// How the scheduler behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerConfig {}

/// The scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    client: ActorClient,
    waits_for_claims: bool,
    nodes: BTreeSet<Arc<str>>,
    next_node: usize,
    waiting: Waiters,
}

impl Scheduler {
    pub(super) fn new(
        client: ActorClient,
        _config: SchedulerConfig,
        waits_for_claims: bool,
    ) -> Self {
        Self {
            client,
            waits_for_claims,
            nodes: BTreeSet::new(),
            next_node: 0,
            waiting: Waiters::default(),
        }
    }
}

impl Actor for Scheduler {
    type Order = Infallible;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match key.storage {
            "pods" if entry.change != Change::Deleted => agenda.now(key),
            "nodes" if entry.change == Change::Deleted => {
                self.nodes.remove(&key.name);
            }
            "nodes" => {
                self.nodes.insert(Arc::clone(&key.name));
            }
            "persistentvolumeclaims" => {
                for pod in self.waiting.take(key) {
                    agenda.now(&pod);
                }
            }
            _ => {}
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        let pod = object.value();
        if object.deleting || !wants_node(&pod) || self.nodes.is_empty() {
            return;
        }
        if self.waits_for_claims
            && let Some(claim) = unbound_claim(&self.client, &pod, &key.namespace)
        {
            self.waiting.wait(claim, key);
            return;
        }
        let node = self.nodes.iter().nth(self.next_node % self.nodes.len());
        let node = node.map(|node| &**node);
        self.next_node += 1;
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": *key.name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("{}/binding", path(key));
        if !self.client.send(Method::POST, &path, &binding).await {
            agenda.retry(key);
        }
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {
        self.nodes.clear();
    }
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
