//! The end: with faults and users gone, everything is as the sets say, and nothing is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Verdict;
use super::case::{Case, belongs, update_revision};
use crate::record::Sync;
use crate::run::QUIET_WITHIN;
use crate::views::{Pod, Set, Status};

pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    let end = case.record.length;
    if case.record.quiet.is_none() {
        let message = format!("the controllers still write {QUIET_WITHIN:?} after the last fault");
        verdict.broken("L-1", end, message);
        return;
    }
    let newest = case.history.newest;
    for key in case.history.sets.keys() {
        let Some(set) = case.history.sets.at(key, newest) else {
            continue;
        };
        if set.terminating {
            verdict.broken("L-8", end, format!("set {} is never gone", set.name));
            continue;
        }
        let mut broken = |rule, why: String| {
            verdict.broken(rule, end, format!("set {}: {why}", set.name));
        };
        let pods = case.history.pods.all_at(&key.0, newest);
        let members = pods.filter(|pod| belongs(set, pod) && pod.ordinal(&set.name).is_some());
        let members: Vec<&Arc<Pod>> = members.collect();
        judge_members(case, &key.0, set, &members, &mut broken);
        judge_revisions(case, &key.0, set, &members, &mut broken);
        judge_claims(case, &key.0, set, &mut broken);
    }
    for key in case.history.pods.keys() {
        let Some(pod) = case.history.pods.at(key, newest) else {
            continue;
        };
        let Some(owner) = &pod.controller else {
            continue;
        };
        let mut sets = case.history.sets.all_at(&key.0, newest);
        if !sets.any(|set| set.uid == owner.uid) {
            let message = format!("pod {} belongs to a set that is gone", pod.name);
            verdict.broken("G-5", end, message);
        }
    }
}

type Broken<'a> = &'a mut dyn FnMut(&'static str, String);

/// L-1: the pods are the wanted ones, all healthy; T-2: the status counts them.
fn judge_members(
    case: &Case<'_>,
    namespace: &str,
    set: &Set,
    members: &[&Arc<Pod>],
    broken: Broken<'_>,
) {
    let now = case.clock_at(case.record.length);
    let found: BTreeSet<u32> = members
        .iter()
        .filter_map(|pod| pod.ordinal(&set.name))
        .collect();
    if found != set.range().collect() {
        broken(
            "L-1",
            format!("pods {found:?} instead of {:?}", set.range()),
        );
    }
    for pod in members {
        let waits = pod
            .claims
            .iter()
            .any(|claim| misses_unnoticed(case, namespace, set, claim));
        if !pod.is_healthy(set.min_ready_seconds, now) && !waits {
            broken("L-1", format!("pod {} is not available", pod.name));
        }
    }
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        let matching = members.iter().filter(|pod| wanted(pod)).count();
        i64::try_from(matching).unwrap_or(i64::MAX)
    };
    let status = &set.status;
    let expected = Status {
        observed_generation: set.generation,
        replicas: count(&|_| true),
        ready: count(&Pod::is_ready),
        available: count(&|pod| pod.is_available(set.min_ready_seconds, now)),
        current: count(&|pod| pod.revision == status.current_revision),
        updated: count(&|pod| pod.revision == status.update_revision),
        current_revision: status.current_revision.clone(),
        update_revision: status.update_revision.clone(),
    };
    if *status != expected {
        broken("T-2", format!("status {status:?}, but {expected:?}"));
    }
}

/// at the end.
fn judge_revisions(
    case: &Case<'_>,
    namespace: &str,
    set: &Set,
    members: &[&Arc<Pod>],
    broken: Broken<'_>,
) {
    let stored = case
        .history
        .revisions
        .all_at(namespace, case.history.newest);
    let owned = |owner: &crate::views::Owner| owner.uid == set.uid;
    let owned: Vec<_> = stored
        .filter(|it| it.controller.as_ref().is_some_and(owned))
        .collect();
    let Some(update) = update_revision(set, &owned) else {
        broken("R-7", "no revision of its own has its template".to_owned());
        return;
    };
    if update.name != set.status.update_revision {
        let status = &set.status.update_revision;
        broken(
            "R-2",
            format!("update revision {status} instead of {}", update.name),
        );
    }
    for pod in members {
        let index = pod
            .ordinal(&set.name)
            .map(|it| it.saturating_sub(set.start));
        let updates = !set.is_on_delete() && index.is_some_and(|it| it >= set.partition);
        if updates && pod.revision != update.name {
            broken(
                "L-1",
                format!("pod {} has revision {}", pod.name, pod.revision),
            );
        }
    }
    let live: BTreeSet<&str> = members
        .iter()
        .map(|pod| pod.revision.as_str())
        .chain([set.status.current_revision.as_str(), update.name.as_str()])
        .collect();
    let dead = owned
        .iter()
        .filter(|it| !live.contains(it.name.as_str()))
        .count();
    let dead = i64::try_from(dead).unwrap_or(i64::MAX);
    if set.history_limit >= 0 && dead > set.history_limit {
        broken(
            "R-5",
            format!("{dead} old revisions, limit {}", set.history_limit),
        );
    }
}

/// V-2 and V-7: every wanted pod has its claims, and their owners follow the retention.
fn judge_claims(case: &Case<'_>, namespace: &str, set: &Set, broken: Broken<'_>) {
    for ordinal in set.range() {
        for template in &set.claims {
            let name = format!("{template}-{}-{ordinal}", set.name);
            let Some(claim) = case.claim(namespace, &name, case.history.newest) else {
                if !misses_unnoticed(case, namespace, set, &name) {
                    broken("V-7", format!("claim {name} is missing"));
                }
                continue;
            };
            let foreign = claim
                .owners
                .iter()
                .any(|it| it.controller && it.uid != set.uid);
            if claim.terminating || foreign {
                continue;
            }
            let owned = claim.owners.iter().any(|it| it.uid == set.uid);
            let pods = claim.owners.iter().any(|it| it.kind == "Pod");
            if owned != set.deletes_claims_with_set() || pods {
                broken(
                    "V-2",
                    format!("claim {name} has the owners {:?}", claim.owners),
                );
            }
        }
    }
}

/// Reports whether a claim is missing and no sync knew it: a claim's end wakes no set, as in the
/// reference, so a pod that waits for the claim gets it at the next event or resync.
fn misses_unnoticed(case: &Case<'_>, namespace: &str, set: &Set, claim: &str) -> bool {
    let of_set = |sync: &&Sync| sync.set.0 == namespace && sync.set.1 == set.name;
    let last = case.record.syncs.iter().rev().find(of_set);
    let known = |revision| case.claim(namespace, claim, revision).is_some();
    !known(case.history.newest) && last.is_none_or(|sync| known(sync.seen.claims))
}
