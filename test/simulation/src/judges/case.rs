//! A run under judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;
use serde_json::Value;
use statefulset_fence::Policy;

use super::leases::Leases;
use super::view::View;
use super::write::Write;
use crate::agent::Process;
use crate::history::History;
use crate::plan::{Action, Fault, Plan};
use crate::record::{Commit, Record, Request, Seen, Sync};
use crate::views::{Claim, Pod, Revision, Set};
use crate::world::{BEGIN, NEW_MEMBER};

/// The minor version that brought completion under every strategy, and unavailable pods outside the
/// budget.
pub(super) const NEWEST: u32 = 37;

/// A run under judgement.
pub struct Case<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The record.
    pub record: &'a Record,
    /// The history.
    pub history: &'a History,
    /// The lease.
    pub(super) leases: Leases,
    began: Timestamp,
    /// The largest skew of an instance's clock, in either direction.
    pub skew_max: Duration,
    /// The requests of each sync, in the order of sending, without those that the API server left
    /// unprocessed and that were sent again.
    by_sync: BTreeMap<usize, Vec<usize>>,
    /// The next sync of the same set in the same process.
    next: BTreeMap<usize, usize>,
}

impl<'a> Case<'a> {
    /// Prepares a run.
    pub fn new(plan: &'a Plan, record: &'a Record, history: &'a History) -> Self {
        let mut by_sync: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut later = BTreeSet::new();
        for (number, request) in record.requests.iter().enumerate().rev() {
            let Some(sync) = request.sync else {
                continue;
            };
            let is_first = later.insert((sync, request.target()));
            if is_first || !request.is_unprocessed {
                by_sync.entry(sync).or_default().push(number);
            }
        }
        for numbers in by_sync.values_mut() {
            numbers.reverse();
        }
        let mut next = BTreeMap::new();
        let mut latest = BTreeMap::new();
        for (number, sync) in record.syncs.iter().enumerate() {
            if let Some(before) = latest.insert((sync.process, &sync.set), number) {
                next.insert(before, number);
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
            leases: Leases::read(record, plan.settings.lease),
            began: BEGIN.parse().unwrap_or_default(),
            skew_max: Duration::from_millis(skews.max().unwrap_or_default()),
            by_sync,
            next,
        }
    }

    /// Returns true for a process of the built-in controller behind a fence.
    pub fn is_built_in(&self, process: Process) -> bool {
        self.plan.settings.is_built_in(process.instance)
    }

    /// Returns true for the processes of the controller whose writes are allowed at the end.
    pub fn acts_at_end(&self, process: Process) -> bool {
        let last = self.record.fence.last();
        last.is_none_or(|last| last.state.denies_built_in() != self.is_built_in(process))
    }

    /// Returns the syncs that came to an end while their process might write: the same process
    /// began another one of the set in time, and its fence stood meanwhile. Those of the built-in
    /// controller end early at each denial.
    pub fn ended_syncs(&self) -> impl Iterator<Item = (usize, &'a Sync)> {
        let syncs = self.record.syncs.iter().enumerate();
        syncs.filter(|(number, sync)| {
            let ended = self.ended_at(*number);
            ended.is_some_and(|ended| {
                self.leases.allow(sync.process, sync.at, ended)
                    && !self.is_built_in(sync.process)
                    && !self.falls(sync.process, sync.at, ended)
            })
        })
    }

    /// Reports whether a process dropped its syncs in this time, because its fence fell.
    pub fn falls(&self, process: Process, from: Duration, to: Duration) -> bool {
        let falls = self.record.falls.iter();
        falls
            .filter(|fall| fall.process == process)
            .any(|fall| (from..=to).contains(&fall.at))
    }

    /// Returns the time before which a sync ended: its process began another one of the set.
    pub fn ended_at(&self, sync: usize) -> Option<Duration> {
        let next = self.next.get(&sync)?;
        Some(self.record.syncs.get(*next)?.at)
    }

    /// Returns the time for which a process was suspended between two times.
    pub fn stopped(&self, process: Process, from: Duration, to: Duration) -> Duration {
        let suspensions = self.record.suspensions.iter();
        let own = suspensions.filter(|(suspended, ..)| *suspended == process);
        own.map(|(_, began, ended)| to.min(*ended).saturating_sub(from.max(*began)))
            .sum()
    }

    /// Returns the minor version that a process emulates.
    pub fn minor(&self, process: Process) -> u32 {
        self.plan.settings.minor(process.instance)
    }

    /// Reports whether updates of a set complete: those of rolling updates alone before 1.37.
    pub fn completes(&self, process: Process, set: &Set) -> bool {
        !set.is_on_delete() || self.minor(process) >= NEWEST
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

    /// Returns the writes of all syncs whose set was known, without those that the fence denied to
    /// the built-in controller.
    pub fn writes(&self) -> impl Iterator<Item = Write<'a>> {
        self.by_sync.iter().flat_map(move |(number, numbers)| {
            let (number, sync) = (*number, &self.record.syncs[*number]);
            let requests: Vec<&Request> = numbers
                .iter()
                .filter_map(|number| self.record.requests.get(*number))
                .collect();
            let writes = (0..requests.len()).filter_map(move |nth| {
                let request = requests[nth];
                if !request.is_write() || request.denied == Some(Policy::Fence) {
                    return None;
                }
                Some(Write {
                    request,
                    sync,
                    seen: self.decided(number, sync),
                    earlier: before(request, &requests[..nth]),
                    view: self.view(number)?,
                    now: self.clock_at(request.sent + self.skew_max),
                    early: self.early(sync.at),
                    newest: self.revision_at(request.sent),
                })
            });
            writes.collect::<Vec<_>>()
        })
    }

    /// Returns the earliest time that a clock can have shown, perhaps before the run.
    pub(super) fn early(&self, at: Duration) -> Timestamp {
        let shown = self.clock_at(at);
        shown.checked_sub(self.skew_max).unwrap_or(shown)
    }

    /// Returns the writes that no sync of a known set explains.
    pub fn strays(&self) -> impl Iterator<Item = &'a Request> {
        let writes = self.record.requests.iter().filter(|it| it.is_write());
        writes.filter(|it| {
            let sync = it.sync.and_then(|sync| self.record.syncs.get(sync));
            sync.is_none_or(|sync| self.set(sync).is_none())
        })
    }

    /// Returns the set that a sync knew.
    pub fn set(&self, sync: &Sync) -> Option<&'a Arc<Set>> {
        self.history.sets.at(&sync.set, sync.seen.sets)
    }

    /// Returns the versions of the caches when a sync decided: it reads its pods once it has adopted
    /// revisions, which takes time.
    pub fn decided(&self, number: usize, sync: &Sync) -> Seen {
        let is_adoption =
            |it: &Request| it.verb == Some(Verb::Patch) && it.resource == "controllerrevisions";
        // The next request may wait for the client's rate limit, so its time says nothing.
        let adoptions = self.requests_of(number).filter(|it| is_adoption(it));
        let adopted = adoptions.last().and_then(|it| it.seen_after);
        Seen {
            pods: adopted.unwrap_or(sync.seen).pods,
            ..sync.seen
        }
    }

    /// Returns what a sync knew; none if it knew no set.
    pub fn view(&self, number: usize) -> Option<View<'a>> {
        let sync = self.record.syncs.get(number)?;
        let (namespace, name) = &sync.set;
        let seen = self.decided(number, sync);
        let set = self.set(sync)?;
        let pods = self.history.pods.all_at(namespace, seen.pods);
        // An orphan that is gone when the set adopts it is none of its pods.
        let gone = |pod: &Pod| {
            self.requests_of(number).any(|it| {
                let patches =
                    it.verb == Some(Verb::Patch) && it.resource == "pods" && !it.resizes();
                patches && it.name == pod.name && it.status == Some(404)
            })
        };
        let members = pods
            .filter(|pod| belongs(set, pod) && !(pod.controller.is_none() && gone(pod)))
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
        let update = update_revision(set, &revisions, self.minor(sync.process));
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

    /// Returns the commit with this revision of the store.
    pub fn commit(&self, revision: u64) -> Option<&'a Commit> {
        let commits = &self.record.commits;
        let found = commits.binary_search_by_key(&revision, |commit| commit.entry.revision);
        found.ok().and_then(|found| commits.get(found))
    }

    /// Returns a claim as of a revision of the store.
    pub fn claim(&self, namespace: &str, name: &str, revision: u64) -> Option<&'a Arc<Claim>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.history.claims.at(&key, revision)
    }
}

/// Returns the requests before another one. Of those that the client sent again because the API
/// server was busy, only the last one counts.
fn before<'a>(request: &Request, earlier: &[&'a Request]) -> Vec<&'a Request> {
    let is_busy = |it: &Request| it.status.is_some_and(|it| it == 429 || it >= 500);
    let is_same = |it: &Request| {
        let target = |it: &Request| (it.verb, it.resource.clone(), it.name.clone());
        target(it) == target(request) && it.body == request.body
    };
    let kept = earlier.iter().filter(|it| !is_busy(it) || !is_same(it));
    kept.copied().collect()
}

/// Reports whether a pod is the set's, or an orphan that the set adopts.
pub fn belongs(set: &Set, pod: &Pod) -> bool {
    let matches = pod.app == set.app;
    match &pod.controller {
        Some(owner) => owner.uid == set.uid && matches,
        None => matches && !pod.terminating && !set.terminating,
    }
}

/// Returns the revision that a controller of this version takes for the set's template: the one that
/// records it byte for byte, or the latest one if that is equal in its known fields; of others,
/// only one that lacks a field of a newer API server, or has it in addition.
pub(super) fn update_revision<'a>(
    set: &Set,
    revisions: &[&'a Arc<Revision>],
    minor: u32,
) -> Option<&'a Arc<Revision>> {
    let revisions = || revisions.iter().copied();
    let forms = set.recorded_by(minor);
    let exact = revisions().filter(|it| forms.contains(&it.recorded));
    if let Some(exact) = newest(exact) {
        return Some(exact);
    }
    if let Some(latest) = newest(revisions()).filter(|it| it.template == set.template) {
        return Some(latest);
    }
    let forms: Vec<Value> = forms.into_iter().map(without_new_member).collect();
    newest(revisions().filter(|it| forms.contains(&without_new_member(it.recorded.clone()))))
}

/// Returns the newest of these revisions.
pub(super) fn newest<'a>(
    revisions: impl Iterator<Item = &'a Arc<Revision>>,
) -> Option<&'a Arc<Revision>> {
    revisions.max_by(|one, other| one.order().cmp(&other.order()))
}

/// Returns a template without the field that only a newer API server knows.
pub(super) fn without_new_member(mut template: Value) -> Value {
    let spec = template.pointer_mut("/spec").and_then(Value::as_object_mut);
    spec.map(|spec| spec.remove(NEW_MEMBER));
    template
}
