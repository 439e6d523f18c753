//! The comparison of one set: the shadow's decisions and the writes seen in the watches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use statefulset_controller_util::consistency::TrackedResource;

use super::observable_write::ObservableWrite;
use super::snapshot::Before;
use crate::metrics::Verdict;

/// Difference in time from which the same decision counts as late.
const LATE: Duration = Duration::from_secs(5);
/// Time for which a decision still explains a write after the objects have changed: the other
/// controller's caches may be behind.
const RECENT: Duration = Duration::from_secs(10);
/// Time in which an unexplained write may still be explained: this program's caches may be behind,
/// and the events of the other controller come later than its writes.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// Time for which explained writes are kept, to tell their events from those of later writes.
const EXPLAINED: Duration = Duration::from_secs(60);
/// Margin after a time limit, so that the limit has passed at the next check.
const TICK: Duration = Duration::from_millis(1);
/// [`GRACE`] while a cache may be behind: longer than the time between two bookmarks of a watch.
const GRACE_MAX: Duration = Duration::from_secs(120);
/// Pause between two checks of a cache that may be behind.
const AGAIN: Duration = Duration::from_secs(5);
/// Time after which the missing write of a current decision is a difference.
const MISSING_WRITE_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of unexplained writes kept per set; beyond it, the oldest are judged immediately.
const UNEXPLAINED_MAX: usize = 2000;

/// A write seen in a watch and not explained yet.
#[derive(Clone)]
pub(super) struct UnexplainedWrite {
    /// Number of the write, unique within the set.
    pub(super) number: u64,
    pub(super) write: ObservableWrite,
    pub(super) before: Before,
    pub(super) at: Timestamp,
    /// Version of the object after the write; of a deleted object the last known one.
    pub(super) version: Box<str>,
}

/// A decision of the shadow whose write was not seen yet.
struct Decided {
    /// Start of the unbroken run of syncs that made it.
    since: Timestamp,
    /// Time of the last sync that made it.
    last: Timestamp,
    /// True if the last sync made it.
    is_current: bool,
    /// True if its missing write was reported.
    is_reported: bool,
    /// The write to the pod of a claim, which comes after the claim's own.
    pod_write: Option<UnexplainedWrite>,
}

/// The open comparisons of one set.
#[derive(Default)]
pub(super) struct OpenComparisons {
    seen: Vec<UnexplainedWrite>,
    decided: BTreeMap<ObservableWrite, Decided>,
    /// Writes to claims that seem to be left out before the write to their pod.
    skipped: Vec<Open>,
    /// Explained writes of the last minute.
    explained: Vec<(ObservableWrite, Timestamp)>,
    next_number: u64,
}

/// The open comparisons of a set that only its events can settle.
pub(super) enum Open {
    /// A write without a decision, and the time of an explained one of the same kind before it.
    Unexplained(UnexplainedWrite, Option<Timestamp>),
    /// A decision about a claim, with its beginning, and the later write to the claim's pod.
    Skipped(ObservableWrite, Timestamp, UnexplainedWrite),
    /// A decision without a write, with its beginning.
    Missing(ObservableWrite, Timestamp),
}

impl OpenComparisons {
    /// Records a write from a watch.
    pub(super) fn see(
        &mut self,
        write: ObservableWrite,
        before: Before,
        version: &str,
        at: Timestamp,
    ) {
        let number = self.next_number;
        self.next_number += 1;
        self.seen.push(UnexplainedWrite {
            number,
            write,
            before,
            at,
            version: version.into(),
        });
    }

    /// The unexplained writes, oldest first.
    pub(super) fn seen(&self) -> Vec<UnexplainedWrite> {
        self.seen.clone()
    }

    /// Explains writes by the decisions so far. Returns a verdict for each explained write.
    pub(super) fn settle(&mut self, now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let (decided, explained) = (&mut self.decided, &mut self.explained);
        explained.retain(|(_, at)| elapsed(*at, now) <= EXPLAINED);
        for seen in &self.seen {
            record_pod_write(decided, seen);
        }
        self.seen.retain(|seen| {
            let explains = |it: &&Decided| it.is_current || elapsed(it.last, seen.at) <= RECENT;
            let Some(decision) = decided.get(&seen.write).filter(explains) else {
                return true;
            };
            let is_late = decision.is_reported || elapsed(decision.since, seen.at) > LATE;
            verdicts.push(if is_late {
                Verdict::Late
            } else {
                Verdict::Equal
            });
            decided.remove(&seen.write);
            explained.push((seen.write.clone(), seen.at));
            false
        });
        let skipped = &mut self.skipped;
        decided.retain(|write, it| {
            let is_kept = it.is_current || elapsed(it.last, now) <= RECENT;
            if !is_kept
                && !it.is_reported
                && let Some(pod) = it.pod_write.take()
            {
                skipped.push(Open::Skipped(write.clone(), it.since, pod));
            }
            is_kept
        });
        verdicts
    }

    /// Explains these writes, and only these, by the decisions on the objects before them.
    pub(super) fn explain(
        &mut self,
        numbers: &BTreeSet<u64>,
        mut decisions: BTreeSet<ObservableWrite>,
        now: Timestamp,
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let explained = &mut self.explained;
        self.seen.retain(|seen| {
            if !numbers.contains(&seen.number) {
                return true;
            }
            if !decisions.remove(&seen.write) {
                return true;
            }
            explained.push((seen.write.clone(), seen.at));
            let is_late = elapsed(seen.at, now) > LATE;
            verdicts.push(if is_late {
                Verdict::Late
            } else {
                Verdict::Equal
            });
            false
        });
        verdicts
    }

    /// Records the decisions on the current objects.
    pub(super) fn decide(&mut self, decisions: BTreeSet<ObservableWrite>, now: Timestamp) {
        let mut earlier = std::mem::take(&mut self.decided);
        for write in decisions {
            let decision = match earlier.remove(&write) {
                Some(known) if known.is_current => Decided { last: now, ..known },
                _ => Decided {
                    since: now,
                    last: now,
                    is_current: true,
                    is_reported: false,
                    pod_write: None,
                },
            };
            self.decided.insert(write, decision);
        }
        for (write, mut decision) in earlier {
            if decision.is_current {
                // It was current until now.
                decision.last = now;
                decision.is_current = false;
            }
            self.decided.insert(write, decision);
        }
    }

    /// Removes and returns the comparisons that have been open for too long. `is_ahead` reports a
    /// write that is newer than a cache on which a decision depends.
    pub(super) fn overdue(&mut self, now: Timestamp, is_ahead: impl Fn(&str) -> bool) -> Vec<Open> {
        let excess = self.seen.len().saturating_sub(UNEXPLAINED_MAX);
        let mut open = std::mem::take(&mut self.skipped);
        let explained = &self.explained;
        let mut position = 0;
        self.seen.retain(|seen| {
            let age = elapsed(seen.at, now);
            let is_late = age >= GRACE && (age >= GRACE_MAX || !is_ahead(&seen.version));
            let is_overdue = position < excess || is_late;
            position += 1;
            if is_overdue {
                let same = explained.iter().filter(|(write, _)| *write == seen.write);
                let before = same.map(|(_, at)| *at).max();
                open.push(Open::Unexplained(seen.clone(), before));
            }
            !is_overdue
        });
        for (write, decision) in &mut self.decided {
            let is_overdue = elapsed(decision.since, now) >= MISSING_WRITE_TIMEOUT;
            if decision.is_current && !decision.is_reported && is_overdue {
                decision.is_reported = true;
                open.push(Open::Missing(write.clone(), decision.since));
            }
        }
        open
    }

    /// Time until the next open comparison is overdue.
    pub(super) fn next_check(&self, now: Timestamp) -> Option<Duration> {
        let seen = self.seen.iter().map(|seen| {
            let first = left(seen.at, GRACE, now);
            if first.is_zero() { AGAIN } else { first }
        });
        let decided = self.decided.values().filter(|it| !it.is_reported);
        let decided = decided.filter_map(|it| match (it.is_current, &it.pod_write) {
            (true, _) => Some(left(it.since, MISSING_WRITE_TIMEOUT, now)),
            (false, Some(_)) => Some(left(it.last, RECENT + TICK, now)),
            (false, None) => None,
        });
        let explained = self.explained.iter();
        let explained = explained.map(|(_, at)| left(*at, EXPLAINED + TICK, now));
        seen.chain(decided).chain(explained).min()
    }

    /// True if nothing is open.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.decided.is_empty() && self.explained.is_empty()
    }
}

/// Marks the decisions on the claims of a written pod.
fn record_pod_write(decided: &mut BTreeMap<ObservableWrite, Decided>, pod: &UnexplainedWrite) {
    if pod.write.resource != TrackedResource::Pods {
        return;
    }
    let suffix = format!("-{}", pod.write.name);
    for (claim, decision) in decided {
        let is_claim = claim.resource == TrackedResource::PersistentVolumeClaims;
        if is_claim && claim.name.ends_with(&suffix) {
            decision.pod_write = Some(pod.clone());
        }
    }
}

/// Time between two moments in any order.
fn elapsed(one: Timestamp, other: Timestamp) -> Duration {
    one.duration_since(other).unsigned_abs()
}

/// Time that is left of a limit.
fn left(since: Timestamp, limit: Duration, now: Timestamp) -> Duration {
    let passed = now.duration_since(since).max(SignedDuration::ZERO);
    limit.saturating_sub(passed.unsigned_abs())
}
