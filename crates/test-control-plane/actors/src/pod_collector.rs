//! The pod garbage collector: force-deletes pods of deleted or out-of-service nodes, terminating
//! pods without a node, and the oldest finished pods above a threshold.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use futures::FutureExt;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_store::clock::later;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::ActorClient;
use super::node_controller::ready;
use super::nodes::{node_key, taints};
use super::pods::PodFields;
use super::runner::{Actor, Agenda, Work};

/// Settings of the pod garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodCollectorConfig {
    /// Time between a node's deletion and the deletion of its pods.
    pub quarantine: Duration,
    /// Delay of the other deletions.
    pub delay: Duration,
    /// Limit of finished pods; 0 means no limit.
    pub terminated_pods: usize,
}

impl Default for PodCollectorConfig {
    fn default() -> Self {
        Self {
            quarantine: Duration::from_secs(40),
            delay: Duration::from_secs(20),
            terminated_pods: 12_500,
        }
    }
}

impl PodCollectorConfig {
    setters! {
        /// Sets the time between a node's deletion and the deletion of its pods.
        quarantine: Duration,
        /// Sets the delay of the other deletions.
        delay: Duration,
        /// Sets the limit of finished pods; 0 means no limit.
        terminated_pods: usize,
    }
}

/// Position of a finished pod in the queue: evicted pods first, then by age and name.
type QueueKey = (bool, String, Key);

/// The pod garbage collector.
#[derive(Debug)]
pub(super) struct PodCollector {
    client: ActorClient,
    config: PodCollectorConfig,
    fields: PodFields,
    /// The pods on each node.
    on_node: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// Pods waiting for deletion, and the start of their wait.
    since: BTreeMap<Key, Instant>,
    /// Finished pods below the limit, in the order of deletion.
    ended: BTreeSet<QueueKey>,
    /// Finished pods above the limit, which come first in the queue.
    condemned: BTreeSet<QueueKey>,
    queue_keys: BTreeMap<Key, QueueKey>,
}

/// Reason for a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Orphaned,
    Stuck,
    TooMany,
}

impl PodCollector {
    pub(super) fn new(client: ActorClient, config: PodCollectorConfig) -> Self {
        Self {
            client,
            config,
            fields: PodFields::new(),
            on_node: BTreeMap::new(),
            since: BTreeMap::new(),
            ended: BTreeSet::new(),
            condemned: BTreeSet::new(),
            queue_keys: BTreeMap::new(),
        }
    }

    /// Returns the reason to delete a pod, if any.
    fn judge(&self, pod: &Object) -> Option<Why> {
        let node = self.fields.node(pod);
        if node.is_empty() {
            return pod.deleting.then_some(Why::Stuck);
        }
        match self.client.get(&node_key(node)) {
            None => Some(Why::Orphaned),
            Some(node) if pod.deleting && is_out_of_service(&node.value()) => Some(Why::Stuck),
            Some(_) => self.is_too_many(&pod.key).then_some(Why::TooMany),
        }
    }

    fn is_too_many(&self, key: &Key) -> bool {
        let queue_key = self.queue_keys.get(key);
        queue_key.is_some_and(|queue_key| self.condemned.contains(queue_key))
    }

    /// Splits the finished pods at the limit.
    fn split_at_limit(&mut self, agenda: &mut Agenda) {
        let limit = match self.config.terminated_pods {
            0 => usize::MAX,
            limit => limit,
        };
        while self.condemned.last() > self.ended.first() && !self.ended.is_empty() {
            self.ended.extend(self.condemned.pop_last());
        }
        while self.ended.len() < limit
            && let Some(last) = self.condemned.pop_last()
        {
            self.ended.insert(last);
        }
        while self.ended.len() > limit
            && let Some(first) = self.ended.pop_first()
        {
            agenda.now(&first.2);
            self.condemned.insert(first);
        }
    }

    fn delay(&self, why: Why) -> Duration {
        match why {
            Why::Orphaned => self.config.quarantine,
            Why::Stuck | Why::TooMany => self.config.delay,
        }
    }

    fn delete(&self, object: &Object, why: Why) -> Work<()> {
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        let mut status = json!({"phase": "Failed"});
        if why == Why::Orphaned {
            let draft = object.draft();
            status["conditions"] = json!([{
                "type": "DisruptionTarget",
                "status": "True",
                "observedGeneration": draft.metadata().generation(),
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastProbeTime": null,
                "lastTransitionTime": self.client.server.now_text(),
            }]);
        }
        let status = (!self.fields.is_over(object)).then_some(status);
        async move {
            if let Some(status) = status
                && !client.patch_status(&key, &uid, &status).await
            {
                return None;
            }
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": *uid}});
            client.delete((&key, &uid), &options).await.then_some(())
        }
        .boxed()
    }

    /// Updates the queue of finished pods.
    fn queue(&mut self, object: &Object, is_gone: bool, agenda: &mut Agenda) {
        let key = &object.key;
        if is_gone {
            if let Some(queue_key) = self.queue_keys.remove(key) {
                self.ended.remove(&queue_key);
                self.condemned.remove(&queue_key);
                self.split_at_limit(agenda);
            }
        } else if self.fields.is_over(object) && !self.queue_keys.contains_key(key) {
            let pod = object.value();
            let reason = pod.pointer("/status/reason").and_then(Value::as_str);
            let created = pod.pointer("/metadata/creationTimestamp");
            let created = created.and_then(Value::as_str).unwrap_or_default();
            let queue_key = (reason != Some("Evicted"), created.to_owned(), key.clone());
            self.ended.insert(queue_key.clone());
            self.queue_keys.insert(key.clone(), queue_key);
            self.split_at_limit(agenda);
        }
    }
}

/// Reports whether a user declared the node out of service.
fn is_out_of_service(node: &Value) -> bool {
    let says_so = taints::of_node(node).any(|taint| taint["key"] == taints::OUT_OF_SERVICE);
    says_so && ready(node) != "True"
}

impl Actor for PodCollector {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        let key = &object.key;
        if &*key.storage == "nodes" {
            for pod in self.on_node.get(&*key.name).into_iter().flatten() {
                agenda.now(pod);
            }
            return;
        }
        if &*key.storage != "pods" {
            return;
        }
        let is_gone = entry.change == Change::Deleted;
        self.queue(object, is_gone, agenda);
        let node = self.fields.node(object);
        let is_new = entry.previous.as_ref().is_none_or(|previous| {
            self.fields.node(previous) != node || previous.deleting != object.deleting
        });
        if is_gone {
            self.since.remove(key);
            if let Some(pods) = self.on_node.get_mut(node) {
                pods.remove(key);
            }
        } else if is_new && (object.deleting || !node.is_empty()) {
            if !node.is_empty() {
                let pods = self.on_node.entry(node.into()).or_default();
                pods.insert(key.clone());
            }
            agenda.now(key);
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key)?;
        let Some(why) = self.judge(&object) else {
            self.since.remove(key);
            return None;
        };
        let since = *self.since.entry(key.clone()).or_insert_with(Instant::now);
        let due = later(since, self.delay(why));
        if due > Instant::now() {
            agenda.at(key, due);
            return None;
        }
        Some(self.delete(&object, why))
    }

    fn reset(&mut self) {
        self.on_node.clear();
        self.ended.clear();
        self.condemned.clear();
        self.queue_keys.clear();
    }
}
