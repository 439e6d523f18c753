//! Main part of a sync: create and repair pods, delete excess pods, replace outdated ones.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::claims::{
    apply_retention, create_missing_claims, has_stale_claim, release_kept_claims,
    retention_matches, take_claims_from, take_unseen_claims_from,
};
use super::failure::Failure;
use super::object::{is_deleting, label, name, number};
use super::pods::{create_pod, delete_condemned, delete_pod, new_pod, update_pod};
use super::recreate::{delete_old_pods, refuse_recreate};
use super::revisions::Chosen;
use super::revisions::{choose, template_of, truncate};
use super::set::{REVISION, is_created, is_running_and_ready, ordinal, phase};
use super::status::{Progress, Status};
use super::status::{new_status, write_status};
use super::sync::{Step, Sync};

/// Pods by position.
struct Places {
    /// One per replica, existing or planned.
    replicas: Vec<Value>,
    /// Excess pods, highest ordinal first.
    condemned: Vec<Value>,
    /// Index of the first unavailable pod, if it is a condemned one.
    first_unavailable: Option<usize>,
}

/// Processes revisions, pods, status and history. Returns the status that was written, or was
/// already stored.
pub(super) fn update(
    sync: &mut Sync,
    pods: &[Value],
    revisions: &[Value],
) -> Result<Status, Failure> {
    let chosen = choose(sync, revisions);
    let result = match &chosen {
        Ok(chosen) => perform(sync, pods, chosen),
        Err(failure) => Err(failure.clone()),
    };
    let truncated = truncate(sync, pods, revisions, chosen.as_ref().ok());
    match (result, truncated) {
        (Ok(status), Ok(())) => Ok(status),
        (Err(failure), Ok(())) | (Ok(_), Err(failure)) => Err(failure),
        (Err(first), Err(second)) => {
            Failure::join(vec![first.clone(), second])?;
            Err(first)
        }
    }
}

fn perform(sync: &mut Sync, pods: &[Value], chosen: &Chosen) -> Result<Status, Failure> {
    let current = template_of(sync, &chosen.current)?;
    let update = template_of(sync, &chosen.update)?;
    refuse_recreate(sync)?;
    let mut status = new_status(sync, chosen);
    status.count(&sync.set, pods, sync.now);
    let result = if sync.set.is_deleting {
        Ok(())
    } else {
        work(sync, pods, chosen, &current, &update, &mut status)
    };
    let written = write_status(sync, &mut status);
    result.and(written).map(|()| status)
}

fn work(
    sync: &mut Sync,
    pods: &[Value],
    chosen: &Chosen,
    current: &Value,
    update: &Value,
    status: &mut Status,
) -> Result<(), Failure> {
    let set = Rc::clone(&sync.set);
    let places = places(sync, pods, chosen, current, update);
    let (replicas, condemned) = (&places.replicas, &places.condemned);
    let all: Vec<Value> = replicas.iter().chain(condemned).cloned().collect();
    if sync.recreates() {
        let wave = delete_old_pods(sync, replicas, condemned, name(&chosen.update));
        if !matches!(wave, Ok(Step::Continue)) {
            status.count(&set, &all, sync.now);
            if wave? == Step::Exit {
                status.set_progress(Progress::Deleting, sync.now);
            }
            return Ok(());
        }
        if name(&chosen.current) != name(&chosen.update) {
            status.set_progress(Progress::Waiting, sync.now);
        }
    }

    let reduce = |sync: &mut Sync| {
        let fix = |sync: &mut Sync, at: usize| fix_pod_claims(sync, &condemned[at]);
        if sync.for_all(condemned.len(), fix)? == Step::Exit {
            return Ok(Step::Exit);
        }
        sync.for_all(condemned.len(), |sync, at| {
            process_condemned(sync, &places, at)
        })
    };
    let reduces_first = sync.scale_down_first && sync.is_burst();
    let stages = |sync: &mut Sync| {
        let mut reached = 0;
        let mut reduced = Step::Continue;
        if reduces_first {
            let result = reduce(sync);
            if result.is_err() {
                release_kept_claims(sync, replicas, condemned).ok();
            }
            reduced = result?;
        }
        let processed = sync.for_all(replicas.len(), |sync, at| {
            reached = reached.max(at + 1);
            process_replica(sync, &replicas[at])
        });
        if !matches!(processed, Ok(Step::Continue)) {
            // The claims of condemned pods that went first follow the policy already.
            let condemned: &[Value] = if reduces_first { &[] } else { condemned };
            let released = release_kept_claims(sync, &replicas[reached..], condemned);
            return processed.and_then(|exit| released.map(|()| exit));
        }
        if reduces_first {
            return Ok(reduced);
        }
        reduce(sync)
    };
    let result = stages(sync);
    status.count(&set, &all, sync.now);
    if result? == Step::Exit {
        return Ok(());
    }
    roll(sync, replicas, name(&chosen.update), status)
}

fn places(sync: &Sync, pods: &[Value], chosen: &Chosen, current: &Value, update: &Value) -> Places {
    let set = &sync.set;
    let count = usize::try_from(set.replicas).unwrap_or(0);
    let mut found: Vec<Option<Value>> = vec![None; count];
    let mut condemned = Vec::new();
    for pod in pods {
        if set.is_in_range(pod) {
            let place = usize::try_from(ordinal(pod) - set.start).unwrap_or(0);
            found[place] = Some(pod.clone());
        } else if ordinal(pod) >= 0 {
            condemned.push(pod.clone());
        }
    }
    condemned.sort_by_key(|pod| -ordinal(pod));

    let until = match set.rolling_update() {
        Some(rolling) => number(rolling, "/partition"),
        None if set.strategy() == "RollingUpdate" => number(&set.value, "/status/currentReplicas"),
        None => 0,
    };
    let planned = |ordinal: i64| {
        if ordinal < set.start + until {
            new_pod(sync, current, name(&chosen.current), ordinal)
        } else {
            new_pod(sync, update, name(&chosen.update), ordinal)
        }
    };
    let filled = (set.start..).zip(found);
    let replicas: Vec<Value> = filled
        .map(|(ordinal, pod)| pod.unwrap_or_else(|| planned(ordinal)))
        .collect();
    let is_unavailable = |pod: &Value| set.is_unavailable(pod, sync.now);
    let first_unavailable = if replicas.iter().any(is_unavailable) {
        None
    } else {
        condemned.iter().rposition(is_unavailable)
    };
    Places {
        replicas,
        condemned,
        first_unavailable,
    }
}

/// Phase A: one replica.
fn process_replica(sync: &mut Sync, pod: &Value) -> Result<Step, Failure> {
    let set = Rc::clone(&sync.set);
    let is_ordered = !sync.is_burst();
    if matches!(phase(pod), "Failed" | "Succeeded") {
        take_claims_from(sync, pod)?;
        if !is_deleting(pod) {
            delete_pod(sync, pod)?;
        }
        return Ok(Step::Exit);
    }
    if !is_created(pod) {
        if has_stale_claim(sync, pod) {
            return Ok(Step::Exit);
        }
        create_pod(sync, pod)?;
        if is_ordered {
            return Ok(Step::Exit);
        }
    }
    if phase(pod) == "Pending"
        && let Err(failure) = create_missing_claims(sync, pod)
    {
        return match take_claims_from(sync, pod) {
            Ok(()) => Err(failure),
            Err(released) => Failure::join(vec![failure, released]).map(|()| Step::Continue),
        };
    }
    let is_settled =
        !is_deleting(pod) && is_running_and_ready(pod) && set.is_available(pod, sync.now);
    if is_ordered && !is_settled {
        if phase(pod) != "Pending" {
            take_claims_from(sync, pod)?;
        }
        return Ok(Step::Exit);
    }
    let is_right =
        set.identity_matches(pod) && set.storage_matches(pod) && retention_matches(sync, pod);
    if !is_right {
        update_pod(sync, pod)?;
    }
    Ok(Step::Continue)
}

/// Phase B: the claims of one condemned pod.
fn fix_pod_claims(sync: &mut Sync, pod: &Value) -> Result<Step, Failure> {
    if !retention_matches(sync, pod) {
        apply_retention(sync, pod)?;
    }
    Ok(Step::Continue)
}

/// Phase C: one condemned pod.
fn process_condemned(sync: &mut Sync, places: &Places, at: usize) -> Result<Step, Failure> {
    let pod = &places.condemned[at];
    let is_ordered = !sync.is_burst();
    if is_deleting(pod) {
        return Ok(if is_ordered {
            Step::Exit
        } else {
            Step::Continue
        });
    }
    let is_fine = is_running_and_ready(pod) && sync.set.is_available(pod, sync.now);
    if is_ordered && !is_fine && places.first_unavailable != Some(at) {
        return Ok(Step::Exit);
    }
    delete_condemned(sync, pod).map(|()| Step::Exit)
}

/// Phase D: replaces pods of other revisions, from the highest index down.
fn roll(
    sync: &mut Sync,
    replicas: &[Value],
    update: &str,
    status: &mut Status,
) -> Result<(), Failure> {
    let set = Rc::clone(&sync.set);
    if set.strategy() == "OnDelete" || sync.recreates() {
        return Ok(());
    }
    let least = set
        .rolling_update()
        .map_or(0, |rolling| number(rolling, "/partition"));
    let least = usize::try_from(least).unwrap_or(0);
    // A pod that waits for the end of an old claim doesn't exist, so nothing names it.
    let is_absent = |pod: &&Value| {
        sync.rules.deletions_name_objects && !is_created(pod) && has_stale_claim(sync, pod)
    };
    let absent = replicas.iter().filter(is_absent).map(name);
    let absent: BTreeSet<String> = absent.map(str::to_owned).collect();
    let is_old = |pod: &Value| {
        label(pod, REVISION) != update && !is_deleting(pod) && !absent.contains(name(pod))
    };
    let is_unavailable = |pod: &Value, sync: &Sync| set.is_unavailable(pod, sync.now);
    if !sync.max_unavailable_gate {
        for pod in replicas.iter().skip(least).rev() {
            if is_old(pod) {
                return replace(sync, pod, status);
            }
            if is_unavailable(pod, sync) {
                return Ok(());
            }
        }
        return Ok(());
    }
    let most = sync.set.max_unavailable()?;
    let unavailable = replicas
        .iter()
        .filter(|pod| is_unavailable(pod, sync))
        .count();
    let budget = most.saturating_sub(unavailable);
    if sync.minor >= 37 && sync.is_burst() {
        let old = || replicas.iter().skip(least).rev().filter(|pod| is_old(pod));
        let (now, set) = (sync.now, &set);
        for pod in old().filter(|pod| set.is_unavailable(pod, now)) {
            replace(sync, pod, status)?;
        }
        let available = old().filter(|pod| !set.is_unavailable(pod, now));
        for pod in available.take(budget) {
            replace(sync, pod, status)?;
        }
        return Ok(());
    }
    for pod in replicas
        .iter()
        .skip(least)
        .rev()
        .filter(|pod| is_old(pod))
        .take(budget)
    {
        replace(sync, pod, status)?;
    }
    Ok(())
}

fn replace(sync: &mut Sync, pod: &Value, status: &mut Status) -> Result<(), Failure> {
    take_unseen_claims_from(sync, pod)?;
    delete_pod(sync, pod)?;
    status.current_replicas -= 1;
    if sync.rules.counters_not_negative {
        status.current_replicas = status.current_replicas.max(0);
    }
    Ok(())
}
