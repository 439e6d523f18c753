//! Bounded work: no hot loops, few writes for each change, and an end in time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Case, Verdict};
use crate::agent::{Agent, Process};
use crate::record::{SetKey, Sync};

/// Window of the search for hot loops.
const WINDOW: Duration = Duration::from_secs(10);

/// Syncs of one set within [`WINDOW`] that no event explains: the retries of a failing sync double
/// their delays from 5 ms on, so 11 of them fit in; successes in between begin again. So does each
/// change, until the caches show it.
const RETRIES_MAX: usize = 33;

pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    judge_hot_loops(case, verdict);
    judge_writes(case, verdict);
    judge_settling(case, verdict);
}

/// Returns the name of the set that an object belongs to.
fn set_of(storage: &str, name: &str) -> Option<String> {
    let set = match storage {
        "statefulsets" => name,
        "pods" | "controllerrevisions" => name.rsplit_once('-')?.0,
        "persistentvolumeclaims" => {
            let rest = name.rsplit_once('-')?.0;
            rest.rsplit_once('-').map_or(rest, |(_, set)| set)
        }
        _ => return None,
    };
    Some(set.to_owned())
}

/// P-6: no set is synced again and again without a change.
fn judge_hot_loops(case: &Case<'_>, verdict: &mut Verdict) {
    let mut changes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for commit in &case.record.commits {
        let (key, revision) = (&commit.entry.object.key, commit.entry.revision);
        if ["statefulsets", "pods"].contains(&&*key.storage)
            && let Some(set) = set_of(&key.storage, &key.name)
        {
            changes.entry(set).or_default().push(revision);
        }
    }
    let mut by_set: BTreeMap<(Process, &SetKey), Vec<&Sync>> = BTreeMap::new();
    // The built-in controller retries what the fence denies.
    let syncs = case.record.syncs.iter();
    for sync in syncs.filter(|it| !case.is_built_in(it.process)) {
        by_set
            .entry((sync.process, &sync.set))
            .or_default()
            .push(sync);
    }
    for ((process, set), syncs) in by_set {
        let changes = changes.get(&set.1).map_or(&[][..], Vec::as_slice);
        let newest = |sync: &Sync| sync.seen.sets.max(sync.seen.pods);
        let seen = |sync: &Sync| changes.partition_point(|revision| *revision <= newest(sync));
        for (first, sync) in syncs.iter().enumerate() {
            let within = syncs[first..]
                .iter()
                .take_while(|it| it.at.saturating_sub(sync.at) < WINDOW);
            let last = within.clone().last().map_or(0, |last| seen(last));
            // Those that the first one found, too: several may have woken it.
            let events = last.saturating_sub(seen(sync)) + usize::from(first == 0);
            let count = within.count();
            if count > RETRIES_MAX + 2 * events {
                let message = format!(
                    "process {process}: {count} syncs of {} for {events} changes",
                    set.1
                );
                verdict.broken("P-6", sync.at, message);
                break;
            }
        }
    }
}

/// Writes of the controllers for every two changes of a set's objects by others. A new pod alone has
/// eight of these, of the scheduler and its kubelet.
const WRITES_FOR_CHANGES: usize = 3;

/// Initial writes of the controllers: the first revision, claims and pods.
const INITIAL_WRITES: usize = 20;

/// P-6: the number of successful writes is bounded by the changes of others. Writes that fail are
/// retried with growing delays, so their number follows from the time.
fn judge_writes(case: &Case<'_>, verdict: &mut Verdict) {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for commit in &case.record.commits {
        let key = &commit.entry.object.key;
        let Some(set) = set_of(&key.storage, &key.name) else {
            continue;
        };
        let (own, others) = counts.entry(set).or_default();
        if commit.agent.parse::<Agent>().is_ok() {
            *own += 1;
        } else {
            *others += 1;
        }
    }
    for (set, (own, others)) in counts {
        let max = INITIAL_WRITES + WRITES_FOR_CHANGES * others / 2;
        if own > max {
            let message = format!("set {set}: {own} writes for {others} changes of others");
            verdict.broken("P-6", case.record.length, message);
        }
    }
}

/// L-2: the instances become quiet in a time that follows from the plan.
fn judge_settling(case: &Case<'_>, verdict: &mut Verdict) {
    let Some(quiet) = case.record.quiet else {
        return;
    };
    let took = quiet.saturating_sub(case.record.calm);
    let max = settles_within(case);
    if took > max {
        let message = format!("quiet only after {took:?}, limit {max:?}");
        verdict.broken("L-2", quiet, message);
    }
}

/// The longest delay of a retry.
const RETRY_MAX: Duration = Duration::from_secs(1_000);

/// Returns the time within which a run becomes quiet after its last fault: the longest retry
/// delay, two lease durations, and for each set two collector delays and the time to replace
/// its pods one by one.
fn settles_within(case: &Case<'_>) -> Duration {
    let settings = &case.plan.settings;
    let calm = case.revision_at(case.record.calm);
    let mut time = RETRY_MAX + Duration::from_secs(2 * settings.lease.lease);
    for key in case.history.sets.keys() {
        let Some(set) = case.history.sets.at(key, calm) else {
            continue;
        };
        let namespace = &key.0;
        let pods = case.history.pods.all_at(namespace, calm);
        let pods = pods.filter(|pod| pod.name.starts_with(&set.name)).count();
        let pods = u32::try_from(pods).unwrap_or(u32::MAX).max(set.replicas);
        let each = settings.pod_start.max()
            + settings.pod_ready.max()
            + settings.pod_stop.max()
            + settings.lag.max() * 4
            + settings.latency.max() * 10
            + Duration::from_secs((set.min_ready_seconds + GRACE).into())
            + repairs_within(case);
        time += each * pods.saturating_add(1);
        time += Duration::from(settings.collector_delay) * 2;
    }
    time
}

/// The longest time until a pod that can be repaired is: sets of plans wait for at most five minutes,
/// and a refused eviction is tried again after half a minute.
fn repairs_within(case: &Case<'_>) -> Duration {
    let opts_in = case.plan.settings.opt_ins.is_some();
    Duration::from_secs(if opts_in { 330 } else { 0 })
}

/// The longest time in seconds that pods of plans get to stop.
const GRACE: u32 = 30;
