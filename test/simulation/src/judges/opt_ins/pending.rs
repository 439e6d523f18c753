//! Open tasks of a set's choices.

use std::sync::Arc;

use super::conditions::{of, wrong_kinds};
use super::gate::requested;
use super::{Case, choices, in_place, limit, restart};
use crate::agent::Process;
use crate::views::{Pod, Set};

/// the requests to remove pods that stay are withdrawn. X-8: once all pods are available, the
/// conditions say that, and what holds the rest back.
pub(in super::super) fn pending(
    case: &Case<'_>,
    process: Process,
    set: &Set,
    members: &[&Arc<Pod>],
    (update, claims): (&str, (&str, u64)),
) -> Vec<(&'static str, String)> {
    let Some(choices) = choices(case, process, set) else {
        return Vec::new();
    };
    let mut tasks = Vec::new();
    let limit = limit::limit(&choices, set, members.iter().copied(), Some(update));
    let is_outdated = |pod: &Pod| {
        let wanted = pod
            .ordinal(&set.name)
            .is_some_and(|it| set.range().contains(&it));
        wanted && pod.revision != update
    };
    let is_replaced = |pod: &Pod| {
        let index = pod
            .ordinal(&set.name)
            .map(|it| it.saturating_sub(set.start));
        is_outdated(pod) && !set.is_on_delete() && index.is_some_and(|it| it >= limit.partition)
    };
    let restarts = |pod: &Pod| {
        let ordinal = pod.ordinal(&set.name).unwrap_or_default();
        let versions = (claims.0, claims.1, claims.1);
        restart::waits(case, process, set, ordinal, versions).in_some
    };
    let asked = members
        .iter()
        .filter(|pod| requested(pod).is_some() && !is_replaced(pod) && !restarts(pod));
    tasks.extend(asked.map(|pod| ("X-6", format!("pod {} stays and is asked to go", pod.name))));
    tasks.extend(in_place::pending(case, set, members));
    if let Some(why) = wrong_kinds(&choices, set) {
        tasks.push(("X-8", why));
    }
    if !choices.has_conditions() {
        return tasks;
    }
    let is_behind = members.iter().any(|pod| is_outdated(pod));
    let reason = match limit.reason {
        _ if !is_behind => "Settled",
        _ if set.is_on_delete() => "OnDelete",
        reason => reason.unwrap_or("Partition"),
    };
    let [stalled, reconciling, progressing] = match reason {
        "Settled" => ["False", "False", "True"],
        "ProgressDeadlineExceeded" => ["True", "False", "False"],
        _ => ["False", "False", "Unknown"],
    };
    let replicas = set.replicas;
    let updated = set.status.updated;
    let counters = format!("{updated} of {replicas} pods are updated, {replicas} are available");
    let available = format!("{replicas} of {replicas} pods are available");
    for (kind, status, reason, message) in [
        ("Available", "True", "AllPodsAvailable", &available),
        ("Stalled", stalled, reason, &counters),
        ("Reconciling", reconciling, reason, &counters),
        ("Progressing", progressing, reason, &counters),
    ] {
        let found = of(&set.conditions, kind);
        let is_right = found.is_some_and(|it| {
            it.status == status && it.reason == reason && it.message.starts_with(message)
        });
        if !is_right {
            tasks.push(("X-8", format!("{kind} is not {status} {reason}: {found:?}")));
        }
    }
    tasks
}
