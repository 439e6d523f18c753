//! A run under judgement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;
use serde_json::Value;

use crate::history::History;
use crate::plan::{Action, Fault, Plan};
use crate::record::{Record, Request, SetKey, Sync};
use crate::views::{Claim, Pod, Revision, Set};
use crate::world::BEGIN;

/// A run under judgement.
pub struct Case<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The record.
    pub record: &'a Record,
    /// The history.
    pub history: &'a History,
    began: Timestamp,
    skew_max: Duration,
    /// The requests of each sync, in the order of sending.
    by_sync: BTreeMap<usize, Vec<usize>>,
}

/// A write of a sync.
pub struct Write<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its sync.
    pub sync: &'a Sync,
    /// The requests of the sync before it.
    pub earlier: Vec<&'a Request>,
    /// The knowledge of the sync.
    pub view: View<'a>,
    /// The latest time that the sync's clock can have shown.
    pub now: Timestamp,
}

/// Objects as a sync knew them.
pub struct View<'a> {
    /// The set.
    pub set: &'a Arc<Set>,
    /// The pods that belong to the set, by ordinal.
    pub members: BTreeMap<u32, &'a Arc<Pod>>,
    /// The revisions of the set, and orphans with a matching name.
    pub revisions: Vec<&'a Arc<Revision>>,
    /// The update revision, if it existed before the sync.
    pub update: Option<&'a Arc<Revision>>,
}

impl<'a> Case<'a> {
    /// Prepares a run.
    pub fn new(plan: &'a Plan, record: &'a Record, history: &'a History) -> Self {
        let mut by_sync: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, request) in record.requests.iter().enumerate() {
            if let Some(sync) = request.sync {
                by_sync.entry(sync).or_default().push(number);
            }
        }
        let skews = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Fault {
                fault: Fault::Skew { millis, .. },
                ..
            } => Some(millis.unsigned_abs()),
            _ => None,
        });
        Self {
            plan,
            record,
            history,
            began: BEGIN.parse().unwrap_or_default(),
            skew_max: Duration::from_millis(skews.max().unwrap_or_default()),
            by_sync,
        }
    }

    /// Returns the time of the cluster's clock.
    pub fn clock_at(&self, at: Duration) -> Timestamp {
        self.began.checked_add(at).unwrap_or(self.began)
    }

    /// Returns the requests of a sync.
    pub fn requests_of(&self, sync: usize) -> impl Iterator<Item = &'a Request> {
        let numbers = self.by_sync.get(&sync).into_iter().flatten();
        numbers.filter_map(|number| self.record.requests.get(*number))
    }

    /// Returns the writes of all syncs whose set was known.
    pub fn writes(&self) -> impl Iterator<Item = Write<'a>> {
        self.by_sync.iter().flat_map(move |(sync, numbers)| {
            let sync = &self.record.syncs[*sync];
            let requests: Vec<&Request> = numbers
                .iter()
                .filter_map(|number| self.record.requests.get(*number))
                .collect();
            let writes = (0..requests.len()).filter_map(move |nth| {
                let request = requests[nth];
                if !request.is_write() {
                    return None;
                }
                Some(Write {
                    request,
                    sync,
                    earlier: requests[..nth].to_vec(),
                    view: self.view(sync)?,
                    now: self.clock_at(request.sent + self.skew_max),
                })
            });
            writes.collect::<Vec<_>>()
        })
    }

    /// Returns what a sync knew; none if it knew no set.
    pub fn view(&self, sync: &Sync) -> Option<View<'a>> {
        let (namespace, name) = &sync.set;
        let set = self.history.sets.at(&sync.set, sync.seen.sets)?;
        let pods = self.history.pods.all_at(namespace, sync.seen.pods);
        let members = pods
            .filter(|pod| belongs(set, pod))
            .filter_map(|pod| Some((pod.ordinal(name)?, pod)))
            .collect();
        let revisions = self
            .history
            .revisions
            .all_at(namespace, sync.seen.revisions)
            .filter(|revision| match &revision.controller {
                Some(owner) => owner.uid == set.uid,
                None => revision.name.starts_with(&format!("{name}-")),
            });
        let revisions: Vec<_> = revisions.collect();
        let update = update_revision(set, &revisions);
        Some(View {
            set,
            members,
            revisions,
            update,
        })
    }

    /// Returns the newest revision of the store at a time.
    pub fn revision_at(&self, at: Duration) -> u64 {
        let commits = &self.record.commits;
        let known = commits.partition_point(|commit| commit.at <= at);
        let last = known.checked_sub(1).and_then(|last| commits.get(last));
        last.map_or(0, |commit| commit.entry.revision)
    }

    /// Returns a claim as of a revision of the store.
    pub fn claim(&self, namespace: &str, name: &str, revision: u64) -> Option<&'a Arc<Claim>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.history.claims.at(&key, revision)
    }
}

/// Reports whether a pod is the set's, or an orphan that the set adopts.
pub fn belongs(set: &Set, pod: &Pod) -> bool {
    let matches = pod.app == set.app;
    match &pod.controller {
        Some(owner) => owner.uid == set.uid && (matches || set.terminating),
        None => matches && !pod.terminating && !set.terminating,
    }
}

/// Returns the revision with the set's template; of several, the newest.
pub(super) fn update_revision<'a>(
    set: &Set,
    revisions: &[&'a Arc<Revision>],
) -> Option<&'a Arc<Revision>> {
    let equal = revisions
        .iter()
        .filter(|revision| template_of(revision) == set.template);
    equal.max_by_key(|revision| revision.number).copied()
}

/// Returns the template that a revision records.
pub(super) fn template_of(revision: &Revision) -> Value {
    let template = revision.data.pointer("/spec/template").cloned();
    let mut template = template.unwrap_or_default();
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}

impl<'a> Write<'a> {
    /// Reports whether it creates an object of this resource.
    pub fn creates(&self, resource: &str) -> bool {
        self.is(Verb::Create, resource)
    }

    /// Reports whether it deletes an object of this resource.
    pub fn deletes(&self, resource: &str) -> bool {
        self.is(Verb::Delete, resource)
    }

    /// Reports whether it changes an object of this resource.
    pub fn changes(&self, resource: &str) -> bool {
        self.is(Verb::Update, resource) || self.is(Verb::Patch, resource)
    }

    fn is(&self, verb: Verb, resource: &str) -> bool {
        let request = self.request;
        request.verb == Some(verb) && request.resource == resource
    }

    /// Returns the ordinal of the written pod; none if the name has none.
    pub fn ordinal(&self) -> Option<u32> {
        ordinal(&self.request.name, &self.view.set.name)
    }

    /// Returns the key of the written object.
    pub fn key(&self) -> SetKey {
        (self.request.namespace.clone(), self.request.name.clone())
    }

    /// Names the write in a message.
    pub fn named(&self) -> String {
        let Request {
            process,
            verb,
            resource,
            subresource,
            name,
            ..
        } = self.request;
        let verb = verb.map_or("?", Verb::name);
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!("process {process}: {verb} {resource}{slash}{subresource} {name}")
    }

    /// Returns the pod that a deletion hits, as the sync knew it.
    pub fn deleted_pod(&self) -> Option<(u32, &'a Arc<Pod>)> {
        let ordinal = self.deletes("pods").then(|| self.ordinal())??;
        Some((ordinal, *self.view.members.get(&ordinal)?))
    }
}

/// Returns the ordinal in a pod's name.
pub(super) fn ordinal(pod: &str, set: &str) -> Option<u32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: u32 = digits.parse().ok()?;
    (ordinal.to_string() == digits).then_some(ordinal)
}
