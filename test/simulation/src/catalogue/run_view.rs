//! Queries on a finished run.

use std::sync::Arc;
use std::time::Duration;

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;
use serde_json::Value;

use crate::agent::Process;
use crate::history::History;
use crate::plan::Plan;
use crate::record::{Commit, Record, Request, SetKey};
use crate::views::{Claim, Pod, Revision, Set};
use crate::world::NAMESPACE;

/// A run as a scenario sees it. All times are milliseconds after the start.
pub struct RunView<'a> {
    /// Number of the variant, counted from 0.
    pub nth: usize,
    /// The plan.
    pub plan: &'a Plan,
    /// The record.
    pub record: &'a Record,
    /// The history.
    pub history: &'a History,
}

impl<'a> RunView<'a> {
    /// Prepares a run.
    pub fn new(nth: usize, plan: &'a Plan, record: &'a Record, history: &'a History) -> Self {
        Self {
            nth,
            plan,
            record,
            history,
        }
    }

    /// The writes of the controllers, leases and events aside, in the order of sending.
    pub fn writes(&self) -> impl Iterator<Item = &'a Request> + use<'a> {
        self.record.requests.iter().filter(|it| it.is_write())
    }

    /// The writes of this kind, whether they had success or not.
    pub fn sent(&self, verb: Verb, resource: &str) -> Vec<&'a Request> {
        self.writes()
            .filter(|it| it.verb == Some(verb) && it.resource == resource && !it.evicts())
            .collect()
    }

    /// The writes of this kind that the API server did.
    pub fn done(&self, verb: Verb, resource: &str) -> Vec<&'a Request> {
        let mut sent = self.sent(verb, resource);
        sent.retain(|it| is_committed(it));
        sent
    }

    /// Number of pods of this name that the controllers created.
    pub fn created(&self, pod: &str) -> usize {
        let created = self.done(Verb::Create, "pods");
        created.iter().filter(|it| it.name == pod).count()
    }

    /// Number of successful deletions of this pod by the controllers.
    pub fn deleted(&self, pod: &str) -> usize {
        let deleted = self.done(Verb::Delete, "pods");
        deleted.iter().filter(|it| it.name == pod).count()
    }

    /// Number of successful evictions of this pod by the controllers.
    pub fn evictions(&self, pod: &str) -> usize {
        let evictions = self.writes().filter(|it| it.evicts() && it.name == pod);
        evictions.filter(|it| is_committed(it)).count()
    }

    /// Number of successful deletions of pods by the controllers.
    pub fn deletions(&self) -> usize {
        self.done(Verb::Delete, "pods").len()
    }

    /// Number of create requests for pods with this name.
    pub fn create_attempts(&self, pod: &str) -> usize {
        let sent = self.sent(Verb::Create, "pods");
        sent.iter().filter(|it| it.name == pod).count()
    }

    /// Number of the writes that got this status code.
    pub fn refused(&self, verb: Verb, resource: &str, code: u16) -> usize {
        let sent = self.sent(verb, resource);
        sent.iter().filter(|it| it.status == Some(code)).count()
    }

    /// Number of writes that were done and whose response never arrived.
    pub fn lost(&self, verb: Verb, resource: &str) -> usize {
        let done = self.done(verb, resource);
        done.iter().filter(|it| it.status.is_none()).count()
    }

    /// Number of the controllers' writes that were sent in this time.
    pub fn writes_in(&self, from: u64, to: u64) -> usize {
        self.writes().filter(|it| within(it.sent, from, to)).count()
    }

    /// Number of syncs of a set that began in this time.
    pub fn syncs_in(&self, set: &str, from: u64, to: u64) -> usize {
        let syncs = self.record.syncs.iter().filter(|it| it.set.1 == set);
        syncs.filter(|it| within(it.at, from, to)).count()
    }

    /// The times at which objects with this name were created, by anybody.
    pub fn creation_times(&self, storage: &str, name: &str) -> Vec<u64> {
        self.commits(storage, name, Change::Added)
    }

    /// Milliseconds between the first creations of two pods; 0 if the first was created later.
    pub fn spacing(&self, first: &str, second: &str) -> u64 {
        let created_at = |pod| self.creation_times("pods", pod).first().copied();
        let [first, second] = [first, second].map(|pod| created_at(pod).unwrap_or_default());
        second.saturating_sub(first)
    }

    /// The times at which objects with this name were gone.
    pub fn gone(&self, storage: &str, name: &str) -> Vec<u64> {
        self.commits(storage, name, Change::Deleted)
    }

    fn commits(&self, storage: &str, name: &str, change: Change) -> Vec<u64> {
        let of_it = |commit: &&Commit| {
            let key = &commit.entry.object.key;
            &*key.storage == storage && &*key.name == name && commit.entry.change == change
        };
        let commits = self.record.commits.iter().filter(of_it);
        commits.map(|commit| millis(commit.at)).collect()
    }

    /// The store's revision at a time.
    pub fn version(&self, at: u64) -> u64 {
        let commits = &self.record.commits;
        let known = commits.partition_point(|commit| millis(commit.at) <= at);
        let last = known.checked_sub(1).and_then(|last| commits.get(last));
        last.map_or(0, |commit| commit.entry.revision)
    }

    /// A pod at a time.
    pub fn pod(&self, name: &str, at: u64) -> Option<&'a Arc<Pod>> {
        self.history.pods.at(&key(name), self.version(at))
    }

    /// All pods at a time, by name.
    pub fn pods(&self, at: u64) -> Vec<&'a Arc<Pod>> {
        let pods = self.history.pods.all_at(NAMESPACE, self.version(at));
        pods.collect()
    }

    /// Names of all pods at a time.
    pub fn names(&self, at: u64) -> Vec<String> {
        self.pods(at).iter().map(|pod| pod.name.clone()).collect()
    }

    /// Names of the images of all pods at a time, in the order of the pods' names.
    pub fn images(&self, at: u64) -> String {
        let images: Vec<&str> = self.pods(at).iter().map(|it| it.image.as_str()).collect();
        images.join(" ")
    }

    /// A set at a time.
    pub fn set(&self, name: &str, at: u64) -> Option<&'a Arc<Set>> {
        self.history.sets.at(&key(name), self.version(at))
    }

    /// A claim at a time.
    pub fn claim(&self, name: &str, at: u64) -> Option<&'a Arc<Claim>> {
        self.history.claims.at(&key(name), self.version(at))
    }

    /// All revisions at a time.
    pub fn revisions(&self, at: u64) -> Vec<&'a Arc<Revision>> {
        let revisions = self.history.revisions.all_at(NAMESPACE, self.version(at));
        revisions.collect()
    }

    /// Number of revisions that ever existed.
    pub fn revisions_ever(&self) -> usize {
        self.history.revisions.keys().count()
    }

    /// Number of pods that ever had this name.
    pub fn incarnations(&self, pod: &str) -> usize {
        self.creation_times("pods", pod).len()
    }

    /// The time at which the run ended.
    pub fn end(&self) -> u64 {
        millis(self.record.length)
    }

    /// The time at which faults and users stopped.
    pub fn calm(&self) -> u64 {
        millis(self.record.calm)
    }

    /// Number of crashes.
    pub fn crashes(&self) -> usize {
        let notes = self.record.notes.iter();
        notes.filter(|(_, it)| it.ends_with("crashes")).count()
    }

    /// The syncing process at each change of process.
    pub fn leaders(&self) -> Vec<Process> {
        let mut leaders: Vec<Process> = Vec::new();
        for sync in &self.record.syncs {
            if leaders.last() != Some(&sync.process) {
                leaders.push(sync.process);
            }
        }
        leaders
    }

    /// An object at a time, as it is stored; null if there is none.
    pub fn stored(&self, storage: &str, name: &str, at: u64) -> Value {
        let commits = self.record.commits.iter().rev();
        let mut commits = commits.filter(|commit| millis(commit.at) <= at);
        let found = commits.find(|commit| {
            let key = &commit.entry.object.key;
            &*key.storage == storage && &*key.name == name
        });
        let found = found.filter(|it| it.entry.change != Change::Deleted);
        found.map_or(Value::Null, |it| it.entry.object.draft().to_value())
    }

    /// Number of events that the controllers sent with this text in them.
    pub fn events(&self, text: &str) -> usize {
        let events = self.record.requests.iter();
        let events = events.filter(|it| it.resource == "events" && it.verb == Some(Verb::Create));
        events
            .filter(|it| it.json().to_string().contains(text))
            .count()
    }

    /// The times at which the controllers deleted pods.
    pub fn deletion_times(&self) -> Vec<u64> {
        let deleted = self.done(Verb::Delete, "pods");
        deleted.iter().map(|it| millis(it.sent)).collect()
    }

    /// Number of syncs in this time whose cache of a resource lacked a commit.
    pub fn stale_syncs(&self, storage: &str, from: u64, to: u64) -> usize {
        let syncs = self.record.syncs.iter();
        let syncs = syncs.filter(|it| within(it.at, from, to));
        let is_stale = |sync: &&crate::record::Sync| {
            let seen = match storage {
                "statefulsets" => sync.seen.sets,
                "pods" => sync.seen.pods,
                "persistentvolumeclaims" => sync.seen.claims,
                _ => sync.seen.revisions,
            };
            self.record.commits.iter().any(|commit| {
                let entry = &commit.entry;
                let is_new = entry.revision > seen && commit.at <= sync.at;
                is_new && &*entry.object.key.storage == storage
            })
        };
        syncs.filter(is_stale).count()
    }

    /// The names of pods that the controllers deleted, in the order of sending.
    pub fn deleted_names(&self) -> Vec<&'a str> {
        let deleted = self.done(Verb::Delete, "pods");
        deleted.iter().map(|it| it.name.as_str()).collect()
    }
}

/// Reports whether the API server did what a request asked for.
pub(super) fn is_committed(request: &Request) -> bool {
    request
        .processed
        .is_some_and(|it| it.code < 300 && it.after > it.before)
}

/// Reports whether a time is between two others.
pub(super) fn within(at: Duration, from: u64, to: u64) -> bool {
    (from..=to).contains(&millis(at))
}

/// A duration in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn key(name: &str) -> SetKey {
    (NAMESPACE.to_owned(), name.to_owned())
}
