//! The scheduler: assigns pods to suitable nodes with the fewest pods, and reports unschedulable
//! pods.

mod cache;
mod pod_context;
mod spread;
mod term;
mod verdict;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::object::{Key, MetadataRef, Needs, Object};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_server::faults::Delay;
use kube_test_control_plane_store::clock::later;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::ActorClient;
use super::events::{EventRef, Recorder, pod_reference};
use super::matcher::PodMatcher;
use super::pods::{HostPort, PodFields, Waiters};
use super::runner::{Actor, Agenda, Incarnations, Work, identity};
use super::seeded_rng::SeededRng;
use super::volume_binder::{SELECTED_NODE, VolumeBinderConfig};
use cache::Cache;
use pod_context::PodContext;
use verdict::{Reasons, Verdict};

/// The annotation that holds a pod back until it is removed or set to `false`.
const HOLD: &str = "scheduler.test-control-plane/hold";

/// The reported reason of held pods.
const HELD: &str = "Insufficient cpu";

/// The reporting controller in the scheduler's events.
const REPORTER: &str = "default-scheduler";

/// Settings of the scheduler.
///
/// It honours resource requests, host ports, node selectors, required node affinity, taints,
/// required affinity and anti-affinity between pods, spread constraints with `DoNotSchedule`, and
/// the location of volumes. It ignores preferences (except `PreferNoSchedule`), claims of dynamic
/// resources, volume limits per node, and priorities: it never preempts pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SchedulerConfig {
    /// Delay between the creation of a pod and its binding.
    pub bind_delay: Delay,
    /// Pods that are unschedulable until they are released.
    pub hold: Vec<PodMatcher>,
}

impl SchedulerConfig {
    setters! {
        /// Sets the delay between the creation of a pod and its binding.
        bind_delay: into Delay,
        /// Sets the pods that are unschedulable until they are released.
        hold: each PodMatcher,
    }
}

/// A test's order to the scheduler.
#[derive(Debug)]
pub(super) enum SchedulerOrder {
    /// Makes the pods with this name unschedulable.
    Hold { pod: Key },
    /// Releases the held pods with this name.
    Release { pod: Key },
}

/// Completed work for a pod.
#[derive(Debug)]
pub(super) enum Done {
    /// The pod with this uid was bound to a node.
    Bound(Box<str>),
    /// The chosen node or the reason for unschedulability was written.
    Reported,
}

/// The scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    client: ActorClient,
    config: SchedulerConfig,
    /// Volume binding settings; `None` if pods don't wait for claims.
    volumes: Option<VolumeBinderConfig>,
    rng: SeededRng,
    incarnations: Incarnations,
    fields: PodFields,
    cache: Cache,
    /// Earliest binding time of each pending pod, by uid.
    due: BTreeMap<Box<str>, Instant>,
    /// The chosen nodes of pods whose volumes are being provisioned there, by uid.
    chosen: BTreeMap<Box<str>, String>,
    /// A test's overrides of the hold, by pod name.
    held: BTreeMap<Key, bool>,
    /// Unschedulable pods, with true for held ones.
    unschedulable: BTreeMap<Key, bool>,
    waiting: Waiters,
    /// `None` if events are disabled.
    events: Option<Recorder>,
}

impl Scheduler {
    pub(super) fn new(
        client: ActorClient,
        config: SchedulerConfig,
        volumes: Option<VolumeBinderConfig>,
        events: Option<Recorder>,
        seed: u64,
    ) -> Self {
        Self {
            client,
            config,
            volumes,
            rng: SeededRng::new(seed),
            incarnations: Incarnations::default(),
            fields: PodFields::new(),
            cache: Cache::default(),
            due: BTreeMap::new(),
            chosen: BTreeMap::new(),
            held: BTreeMap::new(),
            unschedulable: BTreeMap::new(),
            waiting: Waiters::default(),
            events,
        }
    }

    fn is_held(&self, key: &Key, pod: &Value) -> bool {
        if let Some(held) = self.held.get(key) {
            return *held;
        }
        match MetadataRef(pod.get("metadata")).annotation(HOLD) {
            Some(text) => text != "false",
            None => self.config.hold.iter().any(|pods| pods.matches(pod, 1)),
        }
    }

    /// Returns the earliest binding time of a pod.
    fn due(&mut self, object: &Object) -> Instant {
        let (rng, delay) = (self.rng, self.config.bind_delay);
        let nth = self.incarnations.count(object, &self.client);
        *self.due.entry(object.uid.clone()).or_insert_with(|| {
            let whom = identity(&object.key, nth);
            later(Instant::now(), rng.draw(delay, &whom, "bind", 0))
        })
    }

    /// Chooses a node for a pod.
    fn decide(&self, key: &Key, object: &Object, pod: &Value) -> Verdict {
        let nodes = self.cache.nodes().count();
        if self.is_held(key, pod) {
            let mut reasons = Reasons::default();
            for _ in 0..nodes {
                reasons.add(vec![HELD.to_owned()]);
            }
            return Verdict::Nowhere(reasons.unavailable());
        }
        let claims = match &self.volumes {
            None => volumes::Claims::default(),
            Some(config) => match volumes::evaluate_claims(&self.client, config, key, pod) {
                Ok(claims) => claims,
                Err(refusal) => return refusal.verdict(nodes),
            },
        };
        let (needs, ports) = (Needs::of(pod), HostPort::of(pod));
        let around = PodContext::of(&self.cache, object, pod, &self.namespaces());
        let chosen = self.chosen.get(&object.uid);
        let mut reasons = Reasons::default();
        let mut best: Option<((usize, usize), &str)> = None;
        for (name, node) in self.cache.nodes() {
            let mut refused = node.refuses(name, pod, (&needs, &ports));
            if refused.is_empty() {
                let refusal = claims.refuse(name, node);
                refused.extend(refusal.or_else(|| around.refuse(node).map(str::to_owned)));
            }
            if !refused.is_empty() {
                reasons.add(refused);
                continue;
            }
            if chosen.is_some_and(|chosen| chosen == name) {
                best = Some(((0, 0), name));
                break;
            }
            let score = node.score(pod);
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, name));
            }
        }
        match best {
            None => Verdict::Nowhere(reasons.unavailable()),
            Some((_, node)) if claims.wait.is_empty() => Verdict::Node(node.to_owned()),
            Some((_, node)) => Verdict::NodeOnceBound {
                node: node.to_owned(),
                select: claims.select,
                wait: claims.wait,
            },
        }
    }

    fn namespaces(&self) -> Vec<Arc<Object>> {
        self.client.list("namespaces", "")
    }

    /// Binds a pod to a node and reserves its resources there.
    fn bind(&mut self, object: &Object, pod: &Value, node: &str) -> Work<Done> {
        let namespaces = self.namespaces();
        self.cache.assign(object, pod, node, &namespaces);
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": *key.name, "namespace": *key.namespace, "uid": *uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let message = format!(
            "Successfully assigned {}/{} to {node}",
            key.namespace, key.name
        );
        let events = self.events.clone();
        let about = pod_reference(object);
        async move {
            let object = (&key, &*uid);
            let done = client.send(Method::POST, object, "/binding", &binding);
            if !done.await {
                return None;
            }
            if let Some(events) = events {
                let event = EventRef {
                    warning: false,
                    reason: "Scheduled",
                    message: &message,
                    field_path: None,
                };
                events.report(REPORTER, "Binding", &about, event).await;
            }
            Some(Done::Bound(uid))
        }
        .boxed()
    }

    /// Writes the selected node to a pod's claims.
    fn select(&self, node: String, claims: Vec<Key>) -> Work<Done> {
        let client = self.client.clone();
        async move {
            for claim in claims {
                let object = client.get(&claim)?;
                let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
                if !client.patch(&claim, &object.uid, patch).await {
                    return None;
                }
            }
            Some(Done::Reported)
        }
        .boxed()
    }

    /// Reports in a pod's status why it is unschedulable.
    fn explain(&self, object: &Object, pod: &Value, message: &str) -> Option<Work<Done>> {
        if verdict::has_message(pod, message) {
            return None;
        }
        let status = json!({"conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "observedGeneration": pod.pointer("/metadata/generation"),
            "lastProbeTime": null,
            "lastTransitionTime": self.client.server.now_text(),
            "reason": "Unschedulable",
            "message": message,
        }]});
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        let (events, message) = (self.events.clone(), message.to_owned());
        let about = pod_reference(object);
        Some(
            async move {
                if !client.patch_status(&key, &uid, &status).await {
                    return None;
                }
                if let Some(events) = events {
                    let event = EventRef {
                        warning: true,
                        reason: "FailedScheduling",
                        message: &message,
                        field_path: None,
                    };
                    events.report(REPORTER, "Scheduling", &about, event).await;
                }
                Some(Done::Reported)
            }
            .boxed(),
        )
    }

    fn forget(&mut self, key: &Key, uid: &str) {
        self.due.remove(uid);
        self.chosen.remove(uid);
        self.unschedulable.remove(key);
    }

    /// Schedules all unschedulable pods again.
    fn wake_unschedulable(&mut self, agenda: &mut Agenda) {
        for pod in std::mem::take(&mut self.unschedulable).into_keys() {
            agenda.now(&pod);
        }
    }

    /// Schedules pods again that another pod's removal may help.
    fn wake_crowded_out(&mut self, agenda: &mut Agenda) {
        self.unschedulable.retain(|pod, is_held| {
            if !*is_held {
                agenda.now(pod);
            }
            *is_held
        });
    }

    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        if entry.change == Change::Deleted || self.fields.is_over(object) {
            self.forget(&object.key, &object.uid);
            if self.cache.release(object) {
                self.wake_crowded_out(agenda);
            }
        } else if self.fields.node(object).is_empty() {
            agenda.now(&object.key);
        } else if !self.cache.knows(object) {
            let node = self.fields.node(object);
            let namespaces = self.namespaces();
            self.cache
                .assign(object, &object.value(), node, &namespaces);
        }
    }
}

impl Actor for Scheduler {
    type Order = SchedulerOrder;
    type Done = Done;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match &*object.key.storage {
            "pods" => self.note_pod(entry, agenda),
            "nodes" => {
                let is_gone = entry.change == Change::Deleted;
                let node = (!is_gone).then(|| object.value());
                if self.cache.set_node(&object.key.name, node.as_ref()) {
                    self.wake_unschedulable(agenda);
                }
            }
            "persistentvolumeclaims" => {
                for pod in self.waiting.take(&object.key) {
                    agenda.now(&pod);
                }
            }
            "persistentvolumes" if self.volumes.is_some() => {
                let phase = object.value();
                let phase = phase.pointer("/status/phase").and_then(Value::as_str);
                if phase == Some("Available") {
                    self.wake_unschedulable(agenda);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Done>> {
        let object = self.client.get(key)?;
        let pod = object.value();
        if object.deleting || !wants_node(&pod) {
            return None;
        }
        // Its earlier binding failed.
        self.cache.release(&object);
        let due = self.due(&object);
        if due > Instant::now() {
            agenda.at(key, due);
            return None;
        }
        match self.decide(key, &object, &pod) {
            Verdict::Node(node) => Some(self.bind(&object, &pod, &node)),
            Verdict::NodeOnceBound { node, select, wait } => {
                self.chosen.insert(object.uid.clone(), node.clone());
                for claim in wait {
                    self.waiting.wait(claim, key);
                }
                Some(self.select(node, select))
            }
            Verdict::Nowhere(message) => {
                let is_held = self.is_held(key, &pod);
                self.unschedulable.insert(key.clone(), is_held);
                self.explain(&object, &pod, &message)
            }
            Verdict::NowhereWithout(claim, message) => {
                self.waiting.wait(claim, key);
                self.explain(&object, &pod, &message)
            }
        }
    }

    fn done(&mut self, key: &Key, done: Done, _: &mut Agenda) {
        match done {
            Done::Bound(uid) => self.forget(key, &uid),
            Done::Reported => {}
        }
    }

    fn obey(&mut self, order: SchedulerOrder, agenda: &mut Agenda) {
        let (pod, held) = match order {
            SchedulerOrder::Hold { pod } => (pod, true),
            SchedulerOrder::Release { pod } => (pod, false),
        };
        agenda.now(&pod);
        self.held.insert(pod, held);
    }

    fn reset(&mut self) {
        self.cache = Cache::default();
        self.unschedulable.clear();
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
