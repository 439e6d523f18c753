//! The comparison of one set: the shadow's decisions and the writes seen in the watches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use statefulset_controller_util::consistency::TrackedResource;

use super::deed::Deed;
use super::situation::Before;
use crate::metrics::Verdict;

/// Difference in time from which the same decision counts as late.
const LATE: Duration = Duration::from_secs(5);
/// Time for which a decision still explains a write after the objects have changed: the other
/// controller's caches may be behind.
const RECENT: Duration = Duration::from_secs(10);
/// Time in which an unexplained write may still be explained: this program's caches may be behind,
/// and the events of the other controller come later than its writes.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// A moment later.
const TICK: Duration = Duration::from_millis(1);
/// Time for which a decision must stand before its missing write is a difference.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// Unexplained writes of a set that are kept; of more, the first is judged at once.
const UNEXPLAINED_MAX: usize = 2000;

/// A write seen in a watch and not explained yet.
#[derive(Clone)]
pub(super) struct Seen {
    /// Number of the write, unique within the set.
    pub(super) number: u64,
    pub(super) deed: Deed,
    pub(super) before: Before,
    pub(super) at: Timestamp,
}

/// A decision of the shadow whose write was not seen yet.
struct Decided {
    /// Time of the first sync that made it, of all that made it since without a break.
    since: Timestamp,
    /// Time of the last sync that made it.
    last: Timestamp,
    /// True if the last sync made it.
    stands: bool,
    /// True if its missing write was reported.
    is_reported: bool,
    /// True for a write to a claim whose pod was written, which comes after the claim.
    is_passed: bool,
}

/// The open comparisons of one set.
#[derive(Default)]
pub(super) struct Ledger {
    seen: Vec<Seen>,
    decided: BTreeMap<Deed, Decided>,
    /// Claims that another controller left out before it wrote their pod.
    skipped: Vec<(Deed, Timestamp)>,
    next_number: u64,
}

/// The matters of a set that only its events can settle.
pub(super) enum Open {
    /// A write without a decision.
    Unexplained(Seen),
    /// A decision without a write, with its beginning.
    Missing(Deed, Timestamp),
}

impl Ledger {
    /// Records a write from a watch.
    pub(super) fn see(&mut self, deed: Deed, before: Before, at: Timestamp) {
        let number = self.next_number;
        self.next_number += 1;
        self.seen.push(Seen {
            number,
            deed,
            before,
            at,
        });
    }

    /// The unexplained writes, oldest first.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.clone()
    }

    /// Explains writes by the decisions so far. Returns a verdict for each explained write.
    pub(super) fn settle(&mut self, now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let decided = &mut self.decided;
        for seen in &self.seen {
            pass_claims(decided, &seen.deed);
        }
        self.seen.retain(|seen| {
            let explains = |it: &&Decided| it.stands || elapsed(it.last, seen.at) <= RECENT;
            let Some(decision) = decided.get(&seen.deed).filter(explains) else {
                return true;
            };
            let is_late = decision.is_reported || elapsed(decision.since, seen.at) > LATE;
            verdicts.push(if is_late {
                Verdict::Late
            } else {
                Verdict::Equal
            });
            decided.remove(&seen.deed);
            false
        });
        let skipped = &mut self.skipped;
        decided.retain(|deed, it| {
            let is_kept = it.stands || elapsed(it.last, now) <= RECENT;
            if !is_kept && it.is_passed && !it.is_reported {
                skipped.push((deed.clone(), it.since));
            }
            is_kept
        });
        verdicts
    }

    /// Explains these writes, and only these, by the decisions on the objects before them.
    pub(super) fn explain(
        &mut self,
        numbers: &BTreeSet<u64>,
        mut decisions: BTreeSet<Deed>,
        now: Timestamp,
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        self.seen.retain(|seen| {
            if !numbers.contains(&seen.number) {
                return true;
            }
            if !decisions.remove(&seen.deed) {
                return true;
            }
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

    /// Records the decisions on the present objects.
    pub(super) fn decide(&mut self, decisions: BTreeSet<Deed>, now: Timestamp) {
        let mut earlier = std::mem::take(&mut self.decided);
        for deed in decisions {
            let decision = match earlier.remove(&deed) {
                Some(known) if known.stands => Decided { last: now, ..known },
                _ => Decided {
                    since: now,
                    last: now,
                    stands: true,
                    is_reported: false,
                    is_passed: false,
                },
            };
            self.decided.insert(deed, decision);
        }
        for (deed, mut decision) in earlier {
            if decision.stands {
                // It stood until now.
                decision.last = now;
                decision.stands = false;
            }
            self.decided.insert(deed, decision);
        }
    }

    /// Removes and returns the matters that have been open for too long.
    pub(super) fn overdue(&mut self, now: Timestamp) -> Vec<Open> {
        let excess = self.seen.len().saturating_sub(UNEXPLAINED_MAX);
        let skipped = std::mem::take(&mut self.skipped).into_iter();
        let mut open: Vec<Open> = skipped
            .map(|(deed, since)| Open::Missing(deed, since))
            .collect();
        let mut position = 0;
        self.seen.retain(|seen| {
            let is_overdue = position < excess || elapsed(seen.at, now) >= GRACE;
            position += 1;
            if is_overdue {
                open.push(Open::Unexplained(seen.clone()));
            }
            !is_overdue
        });
        for (deed, decision) in &mut self.decided {
            let is_overdue = elapsed(decision.since, now) >= PATIENCE;
            if decision.stands && !decision.is_reported && is_overdue {
                decision.is_reported = true;
                open.push(Open::Missing(deed.clone(), decision.since));
            }
        }
        open
    }

    /// Time until the next matter is overdue.
    pub(super) fn next_check(&self, now: Timestamp) -> Option<Duration> {
        let seen = self.seen.iter().map(|seen| left(seen.at, GRACE, now));
        let decided = self.decided.values().filter(|it| !it.is_reported);
        let decided = decided.filter_map(|it| match (it.stands, it.is_passed) {
            (true, _) => Some(left(it.since, PATIENCE, now)),
            (false, true) => Some(left(it.last, RECENT + TICK, now)),
            (false, false) => None,
        });
        seen.chain(decided).min()
    }

    /// True if nothing is open.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.decided.is_empty()
    }
}

/// Marks the decisions on the claims of a written pod.
fn pass_claims(decided: &mut BTreeMap<Deed, Decided>, deed: &Deed) {
    if deed.resource != TrackedResource::Pods {
        return;
    }
    let suffix = format!("-{}", deed.name);
    for (claim, decision) in decided {
        let is_claim = claim.resource == TrackedResource::PersistentVolumeClaims;
        decision.is_passed |= is_claim && claim.name.ends_with(&suffix);
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
