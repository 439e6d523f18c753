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

use super::deed::{Deed, Verb};
use super::events::Events;
use super::journal::{Difference, Journal};
use super::ledger::{GRACE, Ledger, Open, Seen};
use super::situation;
use super::watch::Ledgers;
use crate::dry::{DrySync, dry_sync, texts};
use crate::metrics::Verdict;
use crate::set_aside::ensure_decoded;

/// Earlier moments at which the shadow decides again to explain a write. More are rare: each needs a
/// write by another program within the last seconds.
const MOMENTS_MAX: usize = 8;
/// Pause before a set with an undecodable object is compared again.
const SET_ASIDE_RETRY: Duration = Duration::from_secs(30);

/// Compares sets.
pub(super) struct Judge {
    pub(super) caches: Caches,
    pub(super) client: RestClient,
    pub(super) ledgers: Arc<Ledgers>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) gates: FeatureGates,
    pub(super) journal: Journal,
}

/// A decision with the objects that it is about.
struct Decision {
    objects: Caches,
    sync: DrySync,
    deeds: BTreeSet<Deed>,
}

impl Judge {
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
            self.ledgers.lock().remove(key);
            self.queue.add_after(key.clone(), SET_ASIDE_RETRY);
            return;
        }
        self.note(key, Ledger::settle);
        while self.explain(key, &set).await {}
        let present = self.decide(&set, &[]).await;
        let deeds = present.deeds.clone();
        let overdue = self.with_ledger(key, |ledger, now| {
            ledger.decide(deeds, now);
            ledger.overdue(now, |version| self.is_behind(version))
        });
        self.close(&set, overdue, &present).await;
        let check = self.with_ledger(key, |ledger, now| ledger.next_check(now));
        if let Some(delay) = check {
            self.queue.add_after(key.clone(), delay);
        }
        if let Ok(outcome) = &present.sync.outcome
            && let Some(delay) = outcome.requeue_after
        {
            self.queue.add_after(key.clone(), delay);
        }
        let mut ledgers = self.ledgers.lock();
        if ledgers.get(key).is_some_and(Ledger::is_empty) {
            ledgers.remove(key);
        }
    }

    /// A set that is deleted, or whose watch is behind those of its objects.
    fn without_set(&self, key: &ObjectKey) {
        let now = self.clock.now();
        let mut ledgers = self.ledgers.lock();
        let Some(ledger) = ledgers.get_mut(key) else {
            return;
        };
        ledger.overdue(now, |_| false);
        if ledger.seen().is_empty() {
            ledgers.remove(key);
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

    fn with_ledger<T>(
        &self,
        key: &ObjectKey,
        action: impl FnOnce(&mut Ledger, Timestamp) -> T,
    ) -> T {
        let now = self.clock.now();
        action(self.ledgers.lock().entry(key.clone()).or_default(), now)
    }

    /// Counts the verdicts of an action on the ledger; false without any.
    fn note(
        &self,
        key: &ObjectKey,
        action: impl FnOnce(&mut Ledger, Timestamp) -> Vec<Verdict>,
    ) -> bool {
        let verdicts = self.with_ledger(key, action);
        for verdict in &verdicts {
            self.journal.judge(*verdict);
        }
        !verdicts.is_empty()
    }

    /// Decides on the objects before each unexplained write and those after it. Returns true if
    /// this explained one.
    async fn explain(&self, key: &ObjectKey, set: &Arc<StatefulSet>) -> bool {
        let seen = self.with_ledger(key, |ledger, _| ledger.seen());
        for first in 0..seen.len().min(MOMENTS_MAX) {
            let undone = seen.get(first..).unwrap_or_default();
            let decision = self.decide(set, undone).await;
            let numbers: BTreeSet<u64> = undone.iter().map(|it| it.number).collect();
            let deeds = decision.deeds;
            if self.note(key, |ledger, now| ledger.explain(&numbers, deeds, now)) {
                return true;
            }
        }
        false
    }

    /// Decides on the cached objects without these writes.
    async fn decide(&self, set: &Arc<StatefulSet>, undone: &[Seen]) -> Decision {
        let is_pod = |seen: &&Seen| seen.deed.resource == TrackedResource::Pods;
        let gone = undone.iter().filter(is_pod).map(|seen| &*seen.deed.name);
        let objects = situation::copy(&self.caches, set, gone);
        for seen in undone.iter().rev() {
            situation::undo(&objects, set.namespace(), &seen.deed.name, &seen.before);
        }
        let sync = dry_sync(&objects, &set.key(), self.clock.now(), self.gates).await;
        let deeds = Deed::predicted(set.name(), &sync);
        Decision {
            objects,
            sync,
            deeds,
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
                Open::Missing(deed, since) => {
                    let events = events.as_ref();
                    if events.is_some_and(|it| it.report_failure(&deed, self.clock.now())) {
                        self.journal.judge(Verdict::Refused);
                    } else {
                        self.differ(set, &deed, true, since, present);
                    }
                }
                Open::Skipped(deed, since, pod) => {
                    // The decision may have been made on caches that were behind.
                    let before = self.decide(set, std::slice::from_ref(&pod)).await;
                    if before.deeds.contains(&deed) {
                        self.differ(set, &deed, true, since, &before);
                    }
                }
                Open::Unexplained(seen, earlier) => {
                    let events = events.as_ref();
                    let is_foreign =
                        events.is_some_and(|it| !it.report(&seen.deed, seen.at, earlier));
                    if has_event(&seen.deed) && is_foreign {
                        tracing::debug!(write = %seen.deed, "write of another program");
                        self.journal.judge(Verdict::Foreign);
                    } else {
                        let before = self.decide(set, std::slice::from_ref(&seen)).await;
                        self.differ(set, &seen.deed, false, seen.at, &before);
                    }
                }
            }
        }
    }

    fn differ(
        &self,
        set: &StatefulSet,
        deed: &Deed,
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
            write: deed.to_string(),
            is_missing,
            decided: decision.deeds.iter().map(ToString::to_string).collect(),
            waiting,
            objects: texts(&decision.objects),
        });
    }
}

/// True if the controller reports such writes in events, so that one without an event has another
/// author. Anyone may create and delete pods and claims; the other writes are a controller's.
fn has_event(deed: &Deed) -> bool {
    let is_pod = deed.resource == TrackedResource::Pods;
    let is_claim = deed.resource == TrackedResource::PersistentVolumeClaims;
    match deed.verb {
        Verb::Create => is_pod || is_claim,
        Verb::Delete => is_pod,
        Verb::Change => false,
    }
}
