//! Conditions in the status of a set that asks for them.
//!
//! All follow from the status, the cause of waiting and the stored conditions, so a new leader
//! continues where the last one stopped.

use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::time::{format_seconds, parse_saturating};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::stateful_set::{
    Condition, Conditions, StatefulSet, StatefulSetStatus,
};

use crate::cause::{Cause, CauseState};
use crate::due::{after, time_left};
use crate::opt_ins::OptIns;
use crate::situation::Situation;

#[cfg(test)]
mod tests;

/// All desired pods are available.
const AVAILABLE: &str = "Available";
/// A rollout or a scaling goes on, or is complete. Under the strategy `Recreate` upstream writes it.
const PROGRESSING: &str = "Progressing";
/// The controller works. Its time is that of the last progress.
const RECONCILING: &str = "Reconciling";
/// Waiting doesn't help.
const STALLED: &str = "Stalled";
/// All claims have the sizes that the set asks for.
pub const CLAIMS_RESIZED: &str = "ClaimsResized";
/// False while an annotation can't be used.
pub const OPT_INS_VALID: &str = "OptInsValid";

const ALL_AVAILABLE: &str = "AllPodsAvailable";
const SOME_UNAVAILABLE: &str = "PodsUnavailable";
const INVALID: &str = "InvalidAnnotation";

/// The result of [`report`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Time until the progress deadline.
    pub sync_after: Option<Duration>,
    /// Annotations that can't be used, if they weren't reported yet.
    pub new_defects: Option<String>,
}

/// Sets the conditions of a computed status. Removes those of a set that doesn't ask for them.
/// Without `situation`, which a set that is being deleted doesn't have, they stay.
pub fn report(
    set: &StatefulSet,
    opt_ins: &OptIns,
    gates: FeatureGates,
    status: &mut StatefulSetStatus,
    situation: Option<&Situation>,
    now: Timestamp,
) -> Report {
    let mut report = Report::default();
    let Some(situation) = situation else {
        return report;
    };
    report.new_defects = report_defects(opt_ins, status, now);
    if !opt_ins.has_conditions() {
        remove_own(status);
        return report;
    }
    let since = last_progress(set, status, situation.cause, now);
    let mut cause = lasting_cause(set, status, situation.cause);
    if let Some(deadline) = opt_ins.progress_deadline
        && cause.state() == CauseState::Working
    {
        report.sync_after = time_left(after(since, deadline), now);
        if report.sync_after.is_none() {
            cause = Cause::ProgressDeadlineExceeded;
        }
    }
    let message = message(set, status, situation);
    let state = cause.state();
    let reason = cause.reason();
    let is_available = status.available_replicas >= set.spec.replicas;
    let availability = if is_available {
        ALL_AVAILABLE
    } else {
        SOME_UNAVAILABLE
    };
    let available = format!(
        "{} of {} pods are available",
        status.available_replicas, set.spec.replicas
    );
    let truth = |holds| if holds { "True" } else { "False" };
    let progressing = match state {
        CauseState::Settled | CauseState::Working => "True",
        CauseState::Stuck => "False",
        CauseState::Held => "Unknown",
    };
    let mut put = |kind: &str, value: &str, reason: &str, message: &str, since| {
        let condition = condition(status.conditions.as_ref(), kind, value, since, now);
        let condition = Condition {
            reason: reason.into(),
            message: message.into(),
            ..condition
        };
        status.conditions = Some(Conditions::with(status.conditions.as_ref(), &condition));
    };
    put(
        AVAILABLE,
        truth(is_available),
        availability,
        &available,
        None,
    );
    // Tools take the first of these two that is true.
    put(
        STALLED,
        truth(state == CauseState::Stuck),
        &reason,
        &message,
        None,
    );
    let is_working = truth(state == CauseState::Working);
    put(RECONCILING, is_working, &reason, &message, Some(since));
    if !(set.spec.recreates() && gates.stateful_set_recreate_strategy) {
        put(PROGRESSING, progressing, &reason, &message, None);
    }
    report
}

/// Removes the conditions that this program wrote about progress. Only the reasons of `Available` are
/// its own beyond doubt: without that one the others are another writer's.
fn remove_own(status: &mut StatefulSetStatus) {
    let conditions = status.conditions.as_ref();
    let available = conditions.and_then(|conditions| conditions.get(AVAILABLE));
    if available.is_some_and(|available| is_own(&available)) {
        let others = [OPT_INS_VALID, CLAIMS_RESIZED];
        let is_left_out = |it: &Condition| is_own(it) && !others.contains(&&*it.condition_type);
        status.conditions = Conditions::without(conditions, is_left_out);
    }
}

/// Returns true if this program wrote the condition for an opt-in.
pub fn is_own(condition: &Condition) -> bool {
    match &*condition.condition_type {
        OPT_INS_VALID | CLAIMS_RESIZED => true,
        AVAILABLE => matches!(&*condition.reason, ALL_AVAILABLE | SOME_UNAVAILABLE),
        PROGRESSING | RECONCILING | STALLED => Cause::of_reason(&condition.reason).is_some(),
        _ => false,
    }
}

/// Returns true if the recorded status of this generation says that the deadline has passed.
pub(crate) fn shows_exceeded_deadline(set: &StatefulSet) -> bool {
    let stalled = set.status.conditions.as_ref();
    let stalled = stalled.and_then(|conditions| conditions.get(STALLED));
    set.status.observed_generation == set.metadata.generation
        && stalled.is_some_and(|it| {
            let cause = Cause::of_reason(&it.reason);
            *it.status == *"True" && cause == Some(Cause::ProgressDeadlineExceeded)
        })
}

/// Sets or removes the condition about annotations that can't be used. Returns them if the recorded
/// condition has others.
fn report_defects(
    opt_ins: &OptIns,
    status: &mut StatefulSetStatus,
    now: Timestamp,
) -> Option<String> {
    let conditions = status.conditions.as_ref();
    let texts: Vec<String> = opt_ins.defects.iter().map(ToString::to_string).collect();
    if texts.is_empty() {
        let is_ours = |it: &Condition| *it.condition_type == *OPT_INS_VALID;
        status.conditions = Conditions::without(conditions, is_ours);
        return None;
    }
    let message = texts.join("; ");
    let earlier = conditions.and_then(|conditions| conditions.get(OPT_INS_VALID));
    let is_new = earlier.is_none_or(|earlier| *earlier.message != *message);
    let condition = Condition {
        reason: INVALID.into(),
        message: message.as_str().into(),
        ..condition(conditions, OPT_INS_VALID, "False", None, now)
    };
    status.conditions = Some(Conditions::with(conditions, &condition));
    is_new.then_some(message)
}

/// Returns a condition with its time: the given one, else the stored one while the status stays.
pub(crate) fn condition(
    conditions: Option<&Conditions>,
    kind: &str,
    value: &str,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Condition {
    let earlier = conditions.and_then(|conditions| conditions.get(kind));
    let earlier = earlier.filter(|it| *it.status == *value && !it.last_transition_time.is_empty());
    let time = match (since, earlier) {
        (None, Some(earlier)) => earlier.last_transition_time,
        (since, _) => format_seconds(since.unwrap_or(now)).into(),
    };
    Condition {
        condition_type: kind.into(),
        status: value.into(),
        last_transition_time: time,
        ..Condition::default()
    }
}

/// Returns the cause; without progress that of the recorded stall, if a pod seems to start: between two
/// crashes its container runs.
fn lasting_cause(set: &StatefulSet, status: &StatefulSetStatus, cause: Cause) -> Cause {
    let stored = set.status.conditions.as_ref();
    let stalled = stored.and_then(|conditions| conditions.get(STALLED));
    let stalled = stalled.filter(|it| *it.status == *"True");
    let earlier = stalled.and_then(|it| Cause::of_reason(&it.reason));
    // The deadline is counted again.
    match earlier.filter(|earlier| *earlier != Cause::ProgressDeadlineExceeded) {
        Some(earlier) if cause == Cause::PodStarting && !has_progressed(set, status) => earlier,
        _ => cause,
    }
}

/// Returns the time of the last progress: now, if the status shows progress or the work begins or
/// ends; else the stored time.
fn last_progress(
    set: &StatefulSet,
    status: &StatefulSetStatus,
    cause: Cause,
    now: Timestamp,
) -> Timestamp {
    let is_at_work =
        |cause: Cause| matches!(cause.state(), CauseState::Working | CauseState::Stuck);
    let stored = set.status.conditions.as_ref();
    let stored = stored.and_then(|conditions| conditions.get(RECONCILING));
    let same = stored.filter(|it| {
        let earlier = Cause::of_reason(&it.reason);
        earlier.is_some_and(|earlier| is_at_work(earlier) == is_at_work(cause))
    });
    let is_stored = !(is_at_work(cause) && has_progressed(set, status));
    let time = same.filter(|_| is_stored);
    let time = time.and_then(|it| parse_saturating(&it.last_transition_time));
    time.unwrap_or(now)
}

/// Returns true if a computed status shows progress since the recorded one: a new spec or template,
/// another pod that is updated or available, or a number of pods closer to the desired one.
fn has_progressed(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    let (recorded, desired) = (&*set.status, set.spec.replicas);
    let distance = |status: &StatefulSetStatus| status.replicas.abs_diff(desired);
    status.observed_generation > recorded.observed_generation
        || status.update_revision != recorded.update_revision
        || status.updated_replicas > recorded.updated_replicas
        || status.available_replicas > recorded.available_replicas
        || distance(status) < distance(recorded)
}

/// Returns the message of the conditions about progress. It changes only with the status and the
/// cause, so that it causes no writes of its own.
fn message(set: &StatefulSet, status: &StatefulSetStatus, situation: &Situation) -> String {
    let replicas = set.spec.replicas;
    let (updated, available) = (status.updated_replicas, status.available_replicas);
    let counters = format!("{updated} of {replicas} pods are updated, {available} are available");
    match &*situation.detail {
        "" => counters,
        detail => format!("{counters}; {detail}"),
    }
}
