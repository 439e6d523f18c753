//! The pods of all nodes, as their kubelets know them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_server::containers::{KubeletError, PodAddress};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::adopting::adopt;
use super::behaviour::{PodBehaviour, PodRule, PodRuleId};
use super::changing::change;
use super::config::KubeletConfig;
use super::ending::begin_to_stop;
use super::invariants::Invariants;
use super::lost_node_pods::LostNodePods;
use super::run::{Now, PodRun, Stage};
use super::served_pod::ServedPod;
use super::status;
use crate::client::ActorClient;
use crate::events::Recorder;
use crate::pods::{PodFields, Waiters};
use crate::runner::{Agenda, Incarnations, identity};
use crate::seeded_rng::SeededRng;

/// Default address of a node without one.
const ADDRESS: &str = "192.0.2.1";

/// The pod network and its number of addresses.
const FIRST_ADDRESS: u32 = 0x0af4_0000;
const ADDRESSES: u32 = 0xfffe;

/// The pods that the kubelets run, and what they know of their nodes.
#[derive(Debug)]
pub(super) struct NodePods {
    pub(super) client: ActorClient,
    pub(super) config: KubeletConfig,
    pub(super) waits_for_claims: bool,
    pub(super) rng: SeededRng,
    pub(super) fields: PodFields,
    /// The address of each existing node.
    pub(super) nodes: BTreeMap<Box<str>, String>,
    /// Reconnected nodes that have not reported yet.
    pub(super) returning: BTreeSet<Key>,
    /// Disconnected nodes.
    pub(super) lost: BTreeSet<Box<str>>,
    /// The pods by uid, including deleted ones that a lost node still runs.
    pub(super) runs: BTreeMap<Box<str>, PodRun>,
    /// The uid of the existing pod with each name.
    pub(super) current: BTreeMap<Key, Box<str>>,
    /// The pods on each node, by uid.
    pub(super) on_node: BTreeMap<Box<str>, BTreeMap<Box<str>, Key>>,
    pub(super) incarnations: Incarnations,
    /// A test's overrides by pod; they win over all configuration.
    pub(super) wanted: BTreeMap<Key, PodBehaviour>,
    /// Rules added at run time, the newest first.
    pub(super) rules: BTreeMap<Reverse<PodRuleId>, PodRule>,
    pub(super) on_lost_nodes: LostNodePods,
    /// Receives invariant violations.
    pub(super) invariants: Invariants,
    pub(super) waiting: Waiters,
    pub(super) next_address: u32,
    /// `None` if events are disabled.
    pub(super) events: Option<Recorder>,
    /// Number of addresses tried so far.
    pub(super) addresses_tried: u64,
}

impl NodePods {
    pub(super) fn new(
        client: ActorClient,
        config: KubeletConfig,
        waits_for_claims: bool,
        invariants: Invariants,
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
            on_lost_nodes: LostNodePods::default(),
            invariants,
            waiting: Waiters::default(),
            next_address: 0,
            events,
            addresses_tried: 0,
        }
    }

    /// Returns the current time with the kubelets' settings.
    pub(super) fn now<'a>(&self, time: &'a str, client: &'a ActorClient) -> Now<'a> {
        let ignores = self.config.ignores_missing_references;
        Now {
            at: Instant::now(),
            time,
            timestamp: client.server.now(),
            rng: self.rng,
            back_off: self.config.back_off,
            service_host: client.server.service_host(),
            references: (!ignores).then_some(client),
        }
    }

    pub(super) fn is_served(&self, node: &str) -> bool {
        self.nodes.contains_key(node) && !self.lost.contains(node)
    }

    /// Processes the current version of a pod.
    pub(super) fn note(&mut self, object: &Object, agenda: &mut Agenda) {
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
            changed = change(run, &pod, behaviour, now);
            run
        } else {
            let address = self.nodes.get(node).cloned();
            let address = address.unwrap_or_else(|| ADDRESS.to_owned());
            let identity = (object.key.clone(), uid.clone(), nth);
            let mut run = PodRun::new(identity, &pod, behaviour, address, now);
            adopt(&mut run, &pod, now);
            self.runs.entry(uid.clone()).or_insert(run)
        };
        run.complain(complaints);
        for missing in std::mem::take(&mut run.awaited) {
            self.waiting.wait(missing, &object.key);
        }
        if object.deleting {
            begin_to_stop(run, grace(&pod), now);
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
    pub(super) fn behaviour(
        &self,
        key: &Key,
        pod: &Value,
        nth: u32,
    ) -> (PodBehaviour, Vec<String>) {
        if let Some(wanted) = self.wanted.get(key) {
            return (wanted.clone(), Vec::new());
        }
        let drawn = self.rng.number(&identity(key, nth), "rule", 0);
        let added = self.rules.values();
        self.config.behaviour(pod, nth, added, drawn)
    }

    /// Returns an address for a starting pod: its node's, or an unused one.
    pub(super) fn new_address(&mut self, pod: &Value, host: &str) -> String {
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
    pub(super) fn forget(&mut self, key: &Key, uid: &str) {
        if self
            .current
            .get(key)
            .is_some_and(|current| **current == *uid)
        {
            self.current.remove(key);
        }
        let is_lost = |run: &PodRun| self.lost.contains(&run.node);
        if self.runs.get(uid).is_some_and(is_lost) {
            self.on_lost_nodes.insert(key, uid);
        } else {
            self.drop_run(uid);
        }
    }

    pub(super) fn drop_run(&mut self, uid: &str) {
        let run = self.runs.remove(uid);
        if let Some(run) = &run {
            self.on_lost_nodes.remove(run);
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
    pub(super) fn serve(&mut self, node: &str, agenda: &mut Agenda) {
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

    pub(super) fn note_node(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
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
                    self.on_lost_nodes.remove(&run);
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

    /// Finds a pod for the API server.
    pub(super) fn find(&self, pod: &PodAddress) -> Result<ServedPod, KubeletError> {
        if !self.is_served(&pod.node) {
            let address = self.nodes.get(&*pod.node).map_or(ADDRESS, String::as_str);
            let message = format!("dial tcp {address}:10250: connect: no route to host");
            return Err(KubeletError::new(502, message));
        }
        let run = self.runs.get(&*pod.uid);
        let run = run.ok_or_else(|| KubeletError::new(404, "pod does not exist"))?;
        let server = self.client.server.clone();
        let handlers = self.config.handlers.clone();
        Ok(ServedPod::of(run, server, handlers, self.rng))
    }

    /// Records a violation if a pod runs alongside another one with its name.
    pub(super) fn check_duplicate_runs(&mut self, uid: &str) {
        for message in self.on_lost_nodes.duplicates(&self.runs, uid) {
            self.invariants.record(self.client.server.now(), message);
        }
    }
}

/// Returns the address of a node.
fn address(node: &Value) -> String {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    let mut addresses = addresses.into_iter().flatten();
    let internal = addresses.find(|address| address["type"] == "InternalIP");
    let internal = internal.and_then(|address| address.get("address")?.as_str());
    internal.unwrap_or(ADDRESS).to_owned()
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
