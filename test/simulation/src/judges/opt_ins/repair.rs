//! Repairs: which pods they replace, how, and how often.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_test_control_plane::route::Verb;

use super::super::case::NEWEST;
use super::super::progress::update_of;
use super::{Case, Verdict, Write, choices, gate, partition};
use crate::views::{Pod, Set};

/// Reasons for which containers wait that don't pass by themselves.
const TROUBLES: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];

/// an eviction is a repair. Deletions that aren't have the rules of updates.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if !write.evicts() {
        return;
    }
    if let Err(why) = check(case, write) {
        let message = format!("{}: no repair, {why}", write.named());
        verdict.broken("X-1", write.request.sent, message);
    }
}

/// Reports whether a removal of a pod is one that the set's repair may make.
pub(in super::super) fn is_repair(case: &Case<'_>, write: &Write<'_>) -> bool {
    write.deleted_pod().is_some() && check(case, write).is_ok()
}

/// a repair replaces only a pod that the rollout waits for, that the update replaces anyway, and
/// that is in trouble or unready for a time, within the budget.
fn check(case: &Case<'_>, write: &Write<'_>) -> Result<(), String> {
    let set = write.view.set;
    let choices = choices(case, write.sync.process, set).ok_or("the gates are off")?;
    let repair = choices.repair.ok_or("the set has none")?;
    if repair.evicts != write.evicts() {
        return Err("it has another method".to_owned());
    }
    let (ordinal, pod) = write.deleted_pod().ok_or("the sync knew no such pod")?;
    if set.is_on_delete() || set.terminating {
        return Err("users delete its pods".to_owned());
    }
    if !set.range().contains(&ordinal) || pod.terminating || pod.has_ended() {
        return Err("it goes anyway".to_owned());
    }
    let update = update_of(case, write).ok_or("there is no update revision")?;
    let members = write.view.members.values().copied();
    let kept = partition(
        case,
        write.sync.process,
        set,
        members,
        Some(update.name.as_str()),
    );
    if ordinal - set.start < kept || pod.revision == update.name {
        return Err("the update keeps it".to_owned());
    }
    let waits = pod.waits.iter().any(|it| TROUBLES.contains(&it.as_str()));
    let is_due = || {
        let due = pod.since.and_then(|it| it.checked_add(repair.after).ok());
        due.is_some_and(|due| due <= write.now)
    };
    if pod.is_ready() || !waits && !is_due() {
        return Err("it is not broken".to_owned());
    }
    blocks(case, write, ordinal)?;
    let max = set.max_unavailable(case.plan.settings.max_unavailable);
    let is_in_flight = |ordinal: u32| match write.view.members.get(&ordinal) {
        // In an ordered set it may wait for the broken pod.
        None => set.parallel,
        Some(pod) => {
            let is_updated = pod.revision == update.name;
            pod.terminating || is_updated && !pod.is_healthy(set.min_ready_seconds, write.now)
        }
    };
    let in_flight = set.range().filter(|it| is_in_flight(*it)).count();
    if in_flight >= max {
        return Err(format!("{in_flight} pods are being replaced already"));
    }
    Ok(())
}

/// Reports whether the rollout waits for the pod: in an ordered set it is the lowest one that isn't
/// ready; in a parallel one the unavailable pods use up the budget.
fn blocks(case: &Case<'_>, write: &Write<'_>, ordinal: u32) -> Result<(), String> {
    let (set, members) = (write.view.set, &write.view.members);
    let is_healthy = |it: &u32| {
        let pod = members.get(it);
        pod.is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.now))
    };
    if !set.parallel {
        let lower = (set.start..ordinal).find(|it| !is_healthy(it));
        return lower.map_or(Ok(()), |it| Err(format!("pod {it} comes first")));
    }
    let early = |it: &u32| {
        let pod = members.get(it);
        pod.is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.early))
    };
    let gate = case.plan.settings.max_unavailable;
    let unavailable = set.range().filter(|it| !early(it)).count();
    if !gate || unavailable < set.max_unavailable(true) {
        return Err("nothing is blocked".to_owned());
    }
    Ok(())
}

/// while a set stays as it is, no pod is repaired twice. X-3: the sync reads the pod live before,
/// and it isn't ready.
pub(super) fn judge_repetitions(case: &Case<'_>, verdict: &mut Verdict) {
    let mut repaired: BTreeMap<(String, u32), (Arc<Set>, String)> = BTreeMap::new();
    for write in case.writes() {
        let Some((ordinal, pod)) = write.deleted_pod() else {
            continue;
        };
        if !is_stored(&write) || !is_only_repair(case, &write) {
            continue;
        }
        if !was_unready(case, &write, pod) {
            let message = format!("{}: not read live, or ready by then", write.named());
            verdict.broken("X-3", write.request.sent, message);
        }
        let set = write.view.set;
        let key = (set.uid.clone(), ordinal);
        let earlier = repaired.insert(key, (Arc::clone(set), pod.uid.clone()));
        let again = earlier.is_some_and(|(earlier, _)| {
            earlier.generation == set.generation && earlier.annotations == set.annotations
        });
        if again {
            let message = format!("{}: repaired for the second time", write.named());
            verdict.broken("X-2", write.request.sent, message);
        }
    }
}

/// Reports whether the sync's last live read of a pod showed that it wasn't ready.
fn was_unready(case: &Case<'_>, write: &Write<'_>, pod: &Pod) -> bool {
    let read = gate::last_read(write, &pod.name);
    let processed = read.and_then(|it| it.processed.filter(|it| it.code == 200));
    let live = processed.and_then(|it| case.history.pods.at(&write.key(), it.before));
    live.is_some_and(|live| live.uid == pod.uid && !live.is_ready())
}

/// Reports whether the API server made a removal.
fn is_stored(write: &Write<'_>) -> bool {
    let processed = write.request.processed;
    processed.is_some_and(|it| it.code < 300 && it.after > it.before)
}

/// Reports whether a removal is a repair and no step of a rolling update: in an ordered set the update
/// waits until all pods are available, in a parallel one for its budget.
fn is_only_repair(case: &Case<'_>, write: &Write<'_>) -> bool {
    let (set, members) = (write.view.set, &write.view.members);
    let is_unhealthy = |pod: &Pod| !pod.is_healthy(set.min_ready_seconds, write.now);
    let waits = members.values().any(|pod| is_unhealthy(pod));
    // Since 1.37 a parallel set replaces its unavailable pods in any case.
    let is_update = if set.parallel {
        case.minor(write.sync.process) >= NEWEST
    } else {
        !waits
    };
    is_repair(case, write) && (write.request.verb == Some(Verb::Create) || !is_update)
}
