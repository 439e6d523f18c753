//! Gates: no held pod is removed, and none of its claims doomed.

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;

use super::choices::{Choices, Gate};
use super::{Case, Verdict, Write};
use crate::plan::opt_ins::REQUESTED;
use crate::record::{Request, SetKey};
use crate::views::{Claim, Pod};

/// before a pod is removed, and before it becomes an owner of its claims, the sync reads it live:
/// its gate doesn't hold, or its time has passed.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, choices: &Choices, verdict: &mut Verdict) {
    let Some(gate) = &choices.gate else {
        return;
    };
    let Some(pod) = removed(write).or_else(|| doomed(case, write)) else {
        return;
    };
    if !passes(case, write, choices, gate, &pod) {
        let message = format!("{}: the gate of {} holds", write.named(), pod.name);
        verdict.broken("X-4", write.request.sent, message);
    }
}

/// Returns the pod that a write removes, unless it goes anyway.
fn removed(write: &Write<'_>) -> Option<Pod> {
    let (_, pod) = write.deleted_pod()?;
    let goes = pod.has_ended() || pod.terminating;
    (!goes).then(|| Pod::clone(pod))
}

/// Returns the pod that becomes an owner of its claim with a write, unless it goes anyway.
fn doomed(case: &Case<'_>, write: &Write<'_>) -> Option<Pod> {
    if !write.changes("persistentvolumeclaims") {
        return None;
    }
    let claim = Claim::read(&write.request.json());
    let version = write.text("/metadata/resourceVersion")?.parse().ok()?;
    let base = case.claim(&write.request.namespace, &write.request.name, version)?;
    let ordinal = write.view.set.ordinal_of_claim(&claim.name)?;
    let pod = write.view.members.get(&ordinal)?;
    let owns = |claim: &Claim| claim.owners.iter().any(|it| it.uid == pod.uid);
    let goes = pod.has_ended() || pod.terminating;
    (owns(&claim) && !owns(base) && !goes).then(|| Pod::clone(pod))
}

/// Returns the sync's last read of a pod before a write.
pub(super) fn last_read<'a>(write: &Write<'a>, pod: &str) -> Option<&'a Request> {
    let mut earlier = write.earlier.iter().rev();
    let read = earlier.find(|it| {
        let is_of_pod = it.resource == "pods" && it.name == pod && it.subresource.is_empty();
        let in_time = it.answered.is_some_and(|at| at <= write.request.sent);
        it.verb == Some(Verb::Get) && is_of_pod && in_time
    });
    read.copied()
}

/// Reports whether the sync's last live read of a pod lets it pass.
fn passes(case: &Case<'_>, write: &Write<'_>, choices: &Choices, gate: &Gate, pod: &Pod) -> bool {
    let Some(read) = last_read(write, &pod.name) else {
        return false;
    };
    let Some(processed) = read.processed else {
        return false;
    };
    match read.status {
        Some(404) => return true,
        Some(200) => {}
        _ => return false,
    }
    let key: SetKey = (write.request.namespace.clone(), pod.name.clone());
    let Some(live) = case.history.pods.at(&key, processed.before) else {
        return true;
    };
    if live.uid != pod.uid || !gate.holds(live) {
        return true;
    }
    let Some(timeout) = choices.timeout else {
        return false;
    };
    let requested = requested(live).unwrap_or(write.now);
    timeout.is_zero()
        || requested
            .checked_add(timeout)
            .is_ok_and(|end| end <= write.now)
}

/// Returns the time of the request to remove a pod.
pub(super) fn requested(pod: &Pod) -> Option<Timestamp> {
    let seconds = pod.labels.get(REQUESTED)?.parse().ok()?;
    Timestamp::from_second(seconds).ok()
}
