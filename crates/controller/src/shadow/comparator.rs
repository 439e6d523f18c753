//! The comparison of one set's decisions with its writes.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::resource_version::compare;
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::rest::RestClient;
use statefulset_client::workqueue::WorkQueue;
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use statefulset_controller_util::stateful_set::StatefulSet;

use super::events::Events;
use super::journal::{Difference, Journal};
use super::observable_write::{ObservableWrite, Verb};
use super::open_comparisons::{GRACE, Open, OpenComparisons, UnexplainedWrite};
use super::snapshot;
use super::watch::ComparisonsBySet;
use crate::dry::{DrySync, dry_sync, texts};
use crate::metrics::Verdict;
use crate::set_aside::ensure_decoded;

/// Earlier moments at which the shadow decides again to explain a write. More are rare: each needs a
/// write by another program within the last seconds.
const MOMENTS_MAX: usize = 8;
/// Pause before a set with an undecodable object is compared again.
const SET_ASIDE_RETRY: Duration = Duration::from_secs(30);

/// Compares sets.
pub(super) struct Comparator {
    pub(super) caches: Caches,
    pub(super) client: RestClient,
    pub(super) comparisons: Arc<ComparisonsBySet>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) gates: FeatureGates,
    pub(super) journal: Journal,
}

/// A decision with the objects that it is about.
struct Decision {
    objects: Caches,
    sync: DrySync,
    writes: BTreeSet<ObservableWrite>,
}

impl Comparator {
    /// Records that the caches are filled.
    pub(super) fn begin(&self) {
        self.journal.begin(self.clock.now());
    }

    /// Decides about a set, and compares. Called for one set at a time.
    pub(super) async fn compare(&self, key: &ObjectKey) {
        self.journal.watches(self.caches.sets.len());
        let Some(set) = self.caches.sets.get(key.namespace(), key.name()) else {
            self.without_set(key);
            return;
        };
        if let Err(error) = ensure_decoded(&self.caches, key) {
            tracing::debug!(%error, "set is not compared");
            self.comparisons.lock().remove(key);
            self.queue.add_after(key.clone(), SET_ASIDE_RETRY);
            return;
        }
        self.note(key, OpenComparisons::settle);
        while self.explain(key, &set).await {}
        let present = self.decide(&set, &[]).await;
        let writes = present.writes.clone();
        let overdue = self.with_comparisons(key, |open, now| {
            open.decide(writes, now);
            open.overdue(now, |version| self.is_behind(version))
        });
        self.close(&set, overdue, &present).await;
        let check = self.with_comparisons(key, |open, now| open.next_check(now));
        if let Some(delay) = check {
            self.queue.add_after(key.clone(), delay);
        }
        if let Ok(outcome) = &present.sync.outcome
            && let Some(delay) = outcome.requeue_after
        {
            self.queue.add_after(key.clone(), delay);
        }
        let mut comparisons = self.comparisons.lock();
        if comparisons.get(key).is_some_and(OpenComparisons::is_empty) {
            comparisons.remove(key);
        }
    }

    /// A set that is deleted, or whose watch is behind those of its objects.
    fn without_set(&self, key: &ObjectKey) {
        let now = self.clock.now();
        let mut comparisons = self.comparisons.lock();
        let Some(open) = comparisons.get_mut(key) else {
            return;
        };
        open.overdue(now, |_| false);
        if open.seen().is_empty() {
            comparisons.remove(key);
        } else {
            self.queue.add_after(key.clone(), GRACE);
        }
    }

    /// True if a cache may lack changes that the writer of this version saw.
    fn is_behind(&self, version: &str) -> bool {
        let caches = &self.caches;
        let versions = [
            caches.sets.last_sync_resource_version(),
            caches.pods.last_sync_resource_version(),
            caches.claims.last_sync_resource_version(),
            caches.revisions.last_sync_resource_version(),
        ];
        versions
            .iter()
            .any(|read| compare(read, version).is_ok_and(Ordering::is_lt))
    }

    fn with_comparisons<T>(
        &self,
        key: &ObjectKey,
        action: impl FnOnce(&mut OpenComparisons, Timestamp) -> T,
    ) -> T {
        let now = self.clock.now();
        action(self.comparisons.lock().entry(key.clone()).or_default(), now)
    }

    /// Counts the verdicts of an action on the open comparisons; false without any.
    fn note(
        &self,
        key: &ObjectKey,
        action: impl FnOnce(&mut OpenComparisons, Timestamp) -> Vec<Verdict>,
    ) -> bool {
        let verdicts = self.with_comparisons(key, action);
        for verdict in &verdicts {
            self.journal.judge(*verdict);
        }
        !verdicts.is_empty()
    }

    /// Decides on the objects before each unexplained write and those after it. Returns true if
    /// this explained one.
    async fn explain(&self, key: &ObjectKey, set: &Arc<StatefulSet>) -> bool {
        let seen = self.with_comparisons(key, |open, _| open.seen());
        for first in 0..seen.len().min(MOMENTS_MAX) {
            let undone = seen.get(first..).unwrap_or_default();
            let decision = self.decide(set, undone).await;
            let numbers: BTreeSet<u64> = undone.iter().map(|it| it.number).collect();
            let writes = decision.writes;
            if self.note(key, |open, now| open.explain(&numbers, writes, now)) {
                return true;
            }
        }
        false
    }

    /// Decides on the cached objects without these writes.
    async fn decide(&self, set: &Arc<StatefulSet>, undone: &[UnexplainedWrite]) -> Decision {
        let is_pod = |seen: &&UnexplainedWrite| seen.write.resource == TrackedResource::Pods;
        let gone = undone.iter().filter(is_pod).map(|seen| &*seen.write.name);
        let objects = snapshot::copy(&self.caches, set, gone);
        for seen in undone.iter().rev() {
            snapshot::undo(&objects, set.namespace(), &seen.write.name, &seen.before);
        }
        let sync = dry_sync(&objects, &set.key(), self.clock.now(), self.gates).await;
        let writes = ObservableWrite::predicted(set.name(), &sync);
        Decision {
            objects,
            sync,
            writes,
        }
    }

    /// Decides the comparisons that are still open.
    async fn close(&self, set: &Arc<StatefulSet>, overdue: Vec<Open>, present: &Decision) {
        if overdue.is_empty() {
            return;
        }
        let events = Events::read(&self.client, set).await;
        for open in overdue {
            match open {
                Open::Missing(write, since) => {
                    let events = events.as_ref();
                    if events.is_some_and(|it| it.report_failure(&write, self.clock.now())) {
                        self.journal.judge(Verdict::Refused);
                    } else {
                        self.differ(set, &write, true, since, present);
                    }
                }
                Open::Skipped(write, since, pod) => {
                    // The decision may have been made on caches that were behind.
                    let before = self.decide(set, std::slice::from_ref(&pod)).await;
                    if before.writes.contains(&write) {
                        self.differ(set, &write, true, since, &before);
                    }
                }
                Open::Unexplained(seen, earlier) => {
                    let events = events.as_ref();
                    let is_foreign =
                        events.is_some_and(|it| !it.report(&seen.write, seen.at, earlier));
                    if has_event(&seen.write) && is_foreign {
                        tracing::debug!(write = %seen.write, "write of another program");
                        self.journal.judge(Verdict::Foreign);
                    } else {
                        let before = self.decide(set, std::slice::from_ref(&seen)).await;
                        self.differ(set, &seen.write, false, seen.at, &before);
                    }
                }
            }
        }
    }

    fn differ(
        &self,
        set: &StatefulSet,
        write: &ObservableWrite,
        is_missing: bool,
        at: Timestamp,
        decision: &Decision,
    ) {
        let waiting = match &decision.sync.outcome {
            Ok(outcome) => outcome.waiting.as_ref().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        };
        self.journal.differ(Difference {
            at,
            set: set.key(),
            write: write.to_string(),
            is_missing,
            decided: decision.writes.iter().map(ToString::to_string).collect(),
            waiting,
            objects: texts(&decision.objects),
        });
    }
}

/// True if the controller reports such writes in events, so that one without an event has another
/// author. Anyone may create and delete pods and claims; the other writes are a controller's.
fn has_event(write: &ObservableWrite) -> bool {
    let is_pod = write.resource == TrackedResource::Pods;
    let is_claim = write.resource == TrackedResource::PersistentVolumeClaims;
    match write.verb {
        Verb::Create => is_pod || is_claim,
        Verb::Delete => is_pod,
        Verb::Change => false,
    }
}
