//! The kubelets of all nodes: they start pods, make them ready, and restart and stop their
//! containers.
//!
//! A [`PodRun`] is a pod on its node: its containers, and timers for its next steps. A status is
//! written only for a change in the simulation, so that a test may set conditions itself.

mod adopting;
mod annotations;
mod answering;
mod behaviour;
mod changing;
mod container;
mod ending;
mod failing;
mod invariants;
mod log;
mod lost_node_pods;
mod orders;
mod own_command;
mod readiness;
mod references;
mod run;
mod script;
mod shell;
mod status;
mod updating;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) use answering::NodeKubelets;
pub use behaviour::{
    BackOff, BehaviourRule, Cause, Crash, Flap, ImagePullFailure, KubeletConfig, Outcome,
    PodBehaviour, PodRule, PodRuleId, ReadinessStep, Stop,
};
pub(super) use ending::Ending;
pub use invariants::{Invariants, Violation};
pub(super) use orders::KubeletOrder;
pub use orders::RunningPod;
pub use script::{
    CommandHandler, ContainerName, Handlers, LogLine, PortHandler, PortServer, Program,
    ScriptedCommand, port_server, program,
};

use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};

use super::client::ActorClient;
use super::delay::SeededRng;
use super::events::{Recorder, pod_reference};
use super::nodes;
use super::pods::{PodFields, Waiters, unbound_claim};
use super::runner::{Actor, Agenda, Incarnations, Work, identity};
use lost_node_pods::LostNodePods;
use run::{Now, PodRun, Stage};

/// Default address of a node without one.
const ADDRESS: &str = "192.0.2.1";

/// The pod network and its number of addresses.
const FIRST_ADDRESS: u32 = 0x0af4_0000;
const ADDRESSES: u32 = 0xfffe;

/// The kubelets.
#[derive(Debug)]
pub(super) struct Kubelet {
    client: ActorClient,
    config: KubeletConfig,
    waits_for_claims: bool,
    rng: SeededRng,
    fields: PodFields,
    /// The address of each existing node.
    nodes: BTreeMap<Box<str>, String>,
    /// Reconnected nodes that have not reported yet.
    returning: BTreeSet<Key>,
    /// Disconnected nodes.
    lost: BTreeSet<Box<str>>,
    /// The pods by uid, including deleted ones that a lost node still runs.
    runs: BTreeMap<Box<str>, PodRun>,
    /// The uid of the existing pod with each name.
    current: BTreeMap<Key, Box<str>>,
    /// The pods on each node, by uid.
    on_node: BTreeMap<Box<str>, BTreeMap<Box<str>, Key>>,
    incarnations: Incarnations,
    /// A test's overrides by pod; they win over all configuration.
    wanted: BTreeMap<Key, PodBehaviour>,
    /// Rules added at run time, the newest first.
    rules: BTreeMap<Reverse<PodRuleId>, PodRule>,
    lost_node_pods: LostNodePods,
    /// Receives invariant violations.
    pub(super) invariants: Invariants,
    waiting: Waiters,
    next_address: u32,
    /// `None` if events are disabled.
    events: Option<Recorder>,
    /// Number of addresses tried so far.
    addresses_tried: u64,
}

impl Kubelet {
    pub(super) fn new(
        client: ActorClient,
        config: KubeletConfig,
        waits_for_claims: bool,
        events: Option<Recorder>,
        seed: u64,
    ) -> Self {
        Self {
            client,
            config,
            waits_for_claims,
            rng: SeededRng::new(seed),
            fields: PodFields::new(),
            nodes: BTreeMap::new(),
            returning: BTreeSet::new(),
            lost: BTreeSet::new(),
            runs: BTreeMap::new(),
            current: BTreeMap::new(),
            on_node: BTreeMap::new(),
            incarnations: Incarnations::default(),
            wanted: BTreeMap::new(),
            rules: BTreeMap::new(),
            lost_node_pods: LostNodePods::default(),
            invariants: Invariants::default(),
            waiting: Waiters::default(),
            next_address: 0,
            events,
            addresses_tried: 0,
        }
    }

    /// Returns the current time with the kubelets' settings.
    fn now<'a>(&self, time: &'a str, client: &'a ActorClient) -> Now<'a> {
        let ignores = self.config.ignores_missing_references;
        Now {
            at: Instant::now(),
            time,
            timestamp: client.server.now(),
            rng: self.rng,
            back_off: self.config.back_off,
            references: (!ignores).then_some(client),
        }
    }

    fn is_served(&self, node: &str) -> bool {
        self.nodes.contains_key(node) && !self.lost.contains(node)
    }

    /// Processes the current version of a pod.
    fn note(&mut self, object: &Object, agenda: &mut Agenda) {
        let node = self.fields.node(object);
        if node.is_empty() {
            return;
        }
        let uid = &object.uid;
        if self.current.get(&object.key) != Some(uid) {
            self.current.insert(object.key.clone(), uid.clone());
            let on_node = self.on_node.entry(node.into()).or_default();
            on_node.insert(uid.clone(), object.key.clone());
        }
        let nth = self.incarnations.count(object, &self.client);
        if !self.is_served(node) {
            return;
        }
        let pod = object.value();
        let (behaviour, complaints) = self.behaviour(&object.key, &pod, nth);
        let (time, client) = (self.client.server.now_text(), self.client.clone());
        let now = self.now(&time, &client);
        let mut changed = false;
        let run = if let Some(run) = self.runs.get_mut(uid) {
            changed = run.change(&pod, behaviour, now);
            run
        } else {
            let address = self.nodes.get(node).cloned();
            let address = address.unwrap_or_else(|| ADDRESS.to_owned());
            let identity = (object.key.clone(), uid.clone(), nth);
            let mut run = PodRun::new(identity, &pod, behaviour, address, now);
            run.adopt(&pod, now);
            self.runs.entry(uid.clone()).or_insert(run)
        };
        run.complain(complaints);
        for missing in std::mem::take(&mut run.awaited) {
            self.waiting.wait(missing, &object.key);
        }
        if object.deleting {
            run.begin_to_stop(grace(&pod), now);
        }
        let has_news = self.events.is_some() && !run.pending_events.is_empty();
        let is_current = |status: &Value| status::is_of(status, &pod);
        let is_reported = run.reported.as_ref().is_some_and(is_current);
        if changed || has_news || !is_reported || status::has_gates(&pod) {
            agenda.now(&object.key);
        } else if let Some(due) = run.next_due() {
            agenda.at(&object.key, due);
        }
    }

    /// Returns the behaviour of a pod, the `nth` with its name, and the errors in its annotations.
    fn behaviour(&self, key: &Key, pod: &Value, nth: u32) -> (PodBehaviour, Vec<String>) {
        if let Some(wanted) = self.wanted.get(key) {
            return (wanted.clone(), Vec::new());
        }
        let drawn = self.rng.number(&identity(key, nth), "rule", 0);
        let added = self.rules.values();
        self.config.behaviour(pod, nth, added, drawn)
    }

    /// Returns an address for a starting pod: its node's, or an unused one.
    fn new_address(&mut self, pod: &Value, host: &str) -> String {
        if pod.pointer("/spec/hostNetwork") == Some(&json!(true)) {
            return host.to_owned();
        }
        loop {
            self.next_address = self.next_address % ADDRESSES + 1;
            let address = Ipv4Addr::from(FIRST_ADDRESS | self.next_address).to_string();
            self.addresses_tried += 1;
            let is_taken =
                |run: &PodRun| run.pod_ip.as_ref() == Some(&address) && run.stage != Stage::Stopped;
            let may_be_taken = self.addresses_tried > u64::from(ADDRESSES);
            if !may_be_taken || !self.runs.values().any(is_taken) {
                return address;
            }
        }
    }

    /// Drops a deleted pod, unless it is on a lost node.
    fn forget(&mut self, key: &Key, uid: &str) {
        if self
            .current
            .get(key)
            .is_some_and(|current| **current == *uid)
        {
            self.current.remove(key);
        }
        let is_lost = |run: &PodRun| self.lost.contains(&run.node);
        if self.runs.get(uid).is_some_and(is_lost) {
            self.lost_node_pods.insert(key, uid);
        } else {
            self.drop_run(uid);
        }
    }

    fn drop_run(&mut self, uid: &str) {
        let run = self.runs.remove(uid);
        if let Some(run) = &run {
            self.lost_node_pods.remove(run);
            run.end_logs(self.client.server.now());
        }
        let node = run.map(|run| run.node);
        let uids = node.and_then(|node| self.on_node.get_mut(&node));
        if uids.and_then(|uids| uids.remove(uid)).is_none() {
            // A pod that never ran doesn't know its node: search all of them.
            for uids in self.on_node.values_mut() {
                uids.remove(uid);
            }
        }
    }

    /// Starts to serve a new or reconnected node and its pods.
    fn serve(&mut self, node: &str, agenda: &mut Agenda) {
        let pods = self.on_node.get(node).cloned().unwrap_or_default();
        for (uid, key) in pods {
            match self.client.get(&key).filter(|object| object.uid == uid) {
                None => self.drop_run(&uid),
                Some(object) => {
                    if let Some(run) = self.runs.get_mut(&uid) {
                        (run.reported, run.sent) = (None, None);
                    }
                    self.note(&object, agenda);
                }
            }
        }
    }

    fn note_node(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        let name: Box<str> = (*object.key.name).into();
        if entry.change == Change::Deleted {
            self.nodes.remove(&name);
            self.lost.remove(&name);
            for uid in self
                .on_node
                .get(&name)
                .into_iter()
                .flatten()
                .map(|(uid, _)| uid)
            {
                if let Some(run) = self.runs.remove(uid) {
                    self.lost_node_pods.remove(&run);
                    run.end_logs(self.client.server.now());
                }
            }
            return;
        }
        if !self.nodes.contains_key(&name) {
            self.nodes.insert(name.clone(), address(&object.value()));
            self.serve(&name, agenda);
        }
    }

    /// Writes a pod's status, or completes its deletion after its final status is written.
    fn write(&mut self, object: &Object, pod: Value) -> Option<Work<Done>> {
        let time = self.client.server.now_text();
        let run = self.runs.get_mut(&object.uid)?;
        let pending = std::mem::take(&mut run.pending_events);
        let events = self.events.clone().filter(|_| !pending.is_empty());
        let stopped = run.stage == Stage::Stopped;
        let status = run.report(&pod, &time);
        let stays = !stopped || is_held(&pod);
        if status.is_none() && stays && events.is_none() {
            return None;
        }
        run.sent.clone_from(&status);
        let client = self.client.clone();
        let (key, uid, node) = (object.key.clone(), object.uid.clone(), run.node.clone());
        let about = pod_reference(object);
        Some(
            async move {
                if let Some(events) = events {
                    for event in &pending {
                        let source = ("kubelet", &*node);
                        events.record(source, &about, event.as_event()).await;
                    }
                }
                let Some(status) = status else {
                    let done = stays || remove(&client, &key, &uid).await;
                    return done.then_some(Done::Ended);
                };
                let patch = status::patch(&status, &pod);
                let written = client.patch_status(&key, &uid, &patch).await;
                written.then_some(Done::Written(uid))
            }
            .boxed(),
        )
    }

    /// Reports a node as healthy, if it has just reconnected.
    fn report_node(&self, object: &Object) -> Option<Work<Done>> {
        let conditions = self.returning.contains(&object.key);
        let conditions = conditions.then(|| nodes::conditions(&self.client.server.now_text()))?;
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        Some(
            async move {
                let status = json!({"conditions": conditions});
                let written = client.patch_status(&key, &uid, &status).await;
                written.then_some(Done::Returned)
            }
            .boxed(),
        )
    }
}

/// Completed work for a pod or a node.
#[derive(Debug)]
pub(super) enum Done {
    /// The status of the pod with this uid was written.
    Written(Box<str>),
    /// The pod's deletion is complete, or there were only events to write.
    Ended,
    /// The node reported as healthy again.
    Returned,
}

/// Completes the deletion of a stopped pod.
async fn remove(client: &ActorClient, key: &Key, uid: &str) -> bool {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid},
    });
    client.delete((key, uid), &options).await
}

/// Returns the address of a node.
fn address(node: &Value) -> String {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    let mut addresses = addresses.into_iter().flatten();
    let internal = addresses.find(|address| address["type"] == "InternalIP");
    let internal = internal.and_then(|address| address.get("address")?.as_str());
    internal.unwrap_or(ADDRESS).to_owned()
}

impl Actor for Kubelet {
    type Order = KubeletOrder;
    type Done = Done;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match &*object.key.storage {
            "pods" if entry.change == Change::Deleted => self.forget(&object.key, &object.uid),
            "pods" => self.note(object, agenda),
            "nodes" => self.note_node(entry, agenda),
            "configmaps" | "persistentvolumeclaims" | "secrets" | "serviceaccounts" => {
                for pod in self.waiting.take(&object.key) {
                    agenda.now(&pod);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Done>> {
        let object = self.client.get(key)?;
        if &*key.storage == "nodes" {
            return self.report_node(&object);
        }
        let (time, client) = (self.client.server.now_text(), self.client.clone());
        let now = self.now(&time, &client);
        let served = self.is_served(self.fields.node(&object));
        let port_is_taken = run::lacks_port(&self.runs, &object.uid);
        let run = self.runs.get(&object.uid).filter(|_| served)?;
        let pod = object.value();
        let starts = run.is_starting(now.at);
        let claim =
            (starts && self.waits_for_claims).then(|| unbound_claim(&client, &pod, &key.namespace));
        if let Some(claim) = claim.flatten() {
            self.waiting.wait(claim, key);
            return self.write(&object, pod);
        }
        let missing = now
            .references
            .filter(|_| starts)
            .map(|client| references::missing_volumes(client, &pod, &key.namespace));
        let missing = missing.unwrap_or_default();
        let starts = starts && missing.is_empty();
        let host = run.host_ip.clone();
        let address = starts.then(|| self.new_address(&pod, &host));
        let run = self.runs.get_mut(&object.uid)?;
        if starts && port_is_taken {
            run.end_as(Ending::port_conflict(), now);
        }
        references::retry_config(run, now);
        if missing.is_empty() {
            run.run_due(address, now);
        } else {
            references::wait_for_volumes(run, missing);
            run.run_due_but_start(now);
        }
        run.attach(&pod, now);
        if let Some(due) = run.next_due_after(now.at) {
            agenda.at(key, due);
        }
        for missing in std::mem::take(&mut run.awaited) {
            self.waiting.wait(missing, key);
        }
        self.check_duplicate_runs(&object.uid);
        self.write(&object, pod)
    }

    fn done(&mut self, key: &Key, done: Done, agenda: &mut Agenda) {
        match done {
            Done::Written(uid) => {
                let Some(run) = self.runs.get_mut(&uid) else {
                    return;
                };
                if let Some(sent) = run.sent.take() {
                    run.reported = Some(sent);
                }
                if run.stage == Stage::Stopped {
                    agenda.now(key);
                }
            }
            Done::Ended => {}
            Done::Returned => {
                self.returning.remove(key);
            }
        }
    }

    fn obey(&mut self, order: KubeletOrder, agenda: &mut Agenda) {
        self.carry_out(order, agenda);
    }

    fn reset(&mut self) {}

    fn replayed(&mut self, _: &mut Agenda) {
        let gone: Vec<(Key, Box<str>)> = self
            .current
            .iter()
            .filter(|(key, uid)| self.client.get(key).is_none_or(|o| o.uid != **uid))
            .map(|(key, uid)| (key.clone(), uid.clone()))
            .collect();
        for (key, uid) in gone {
            self.forget(&key, &uid);
        }
    }
}

/// Returns the grace period of a terminating pod. A pod shows a period of 0 seconds only while a
/// finalizer holds it; a kubelet then uses the period in its spec.
fn grace(pod: &Value) -> Duration {
    let seconds = |path| {
        let seconds = pod.pointer(path).and_then(Value::as_u64);
        seconds.filter(|seconds| *seconds > 0)
    };
    let grace = seconds("/metadata/deletionGracePeriodSeconds")
        .or_else(|| seconds("/spec/terminationGracePeriodSeconds"));
    Duration::from_secs(grace.unwrap_or(1))
}

/// Reports whether a pod was already stopped and only finalizers hold it.
fn is_held(pod: &Value) -> bool {
    let grace = pod.pointer("/metadata/deletionGracePeriodSeconds");
    let finalizers = pod
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    grace == Some(&json!(0)) && finalizers.is_some_and(|list| !list.is_empty())
}
