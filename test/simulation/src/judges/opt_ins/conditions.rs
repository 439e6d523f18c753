//! Conditions in statuses.

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;

use super::choices::Choices;
use super::{Case, Verdict, Write};
use crate::plan::opt_ins::PREFIX;
use crate::views::{Condition, Set};

/// Conditions of a set that asks for them.
pub(super) const KINDS: [&str; 4] = ["Available", "Progressing", "Reconciling", "Stalled"];

/// The condition about annotations that can't be used.
pub(super) const VALID: &str = "OptInsValid";

/// Reasons with which a set works, or would without a stall.
const AT_WORK: [&str; 16] = [
    "InProgress",
    "Terminating",
    "PodStarting",
    "MinReadySeconds",
    "UnavailableBudget",
    "RetryBackOff",
    "Repair",
    "EvictionRefused",
    "RemovalGate",
    "InPlaceUpdate",
    "ImagePull",
    "ContainerConfig",
    "CrashLoop",
    "OldRevisionBlocks",
    "PartitionKeepsBrokenPod",
    EXCEEDED,
];

/// Reason of a stall after the deadline.
const EXCEEDED: &str = "ProgressDeadlineExceeded";

/// Reports whether conditions differ in their times alone, or not at all.
pub(in super::super) fn same(left: &[Condition], right: &[Condition]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| left.is_same(right))
}

/// Returns the condition of a type.
pub(super) fn of<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.kind == kind)
}

/// the conditions of a written status fit the choices, the counters and each other, and their times
/// are those of the last change or the last progress.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, choices: &Choices, verdict: &mut Verdict) {
    let set = write.view.set;
    // After a conflict the conditions of a newer cache stay as they are.
    let is_repeated = write.follows(Verb::Update);
    if write.request.subresource != "status" || set.terminating || is_repeated {
        return;
    }
    let written = Set::read(&write.request.json());
    let found = wrong_kinds(choices, &written)
        .or_else(|| choices.has_conditions().then(|| wrong(&written))?)
        .or_else(|| wrong_times(case, write, choices, &written));
    if let Some(why) = found {
        let conditions = &written.conditions;
        let message = format!("{}: {why}: {conditions:?}", write.named());
        verdict.broken("X-7", write.request.sent, message);
    }
}

/// Returns what is wrong with the presence of conditions.
pub(super) fn wrong_kinds(choices: &Choices, set: &Set) -> Option<String> {
    let has = |kind: &str| of(&set.conditions, kind).is_some();
    let rest = KINDS
        .into_iter()
        .map(|kind| (kind, choices.has_conditions()));
    let mut all = rest.chain([(VALID, !choices.defects.is_empty())]);
    let Some((kind, wanted)) = all.find(|(kind, wanted)| has(kind) != *wanted) else {
        return wrong_defects(choices, set);
    };
    Some(if wanted {
        format!("{kind} is missing")
    } else {
        format!("{kind} is left")
    })
}

/// Returns what is wrong with the names and values of annotations that can't be used.
fn wrong_defects(choices: &Choices, set: &Set) -> Option<String> {
    let message = of(&set.conditions, VALID).map_or("", |it| it.message.as_str());
    let parts: Vec<&str> = message.split("; ").filter(|it| !it.is_empty()).collect();
    let mut unnamed = choices.defects.iter().filter(|(name, value)| {
        let start = format!("{PREFIX}{name}: ");
        let value = value.as_ref().map(|value| format!("{value:?}"));
        !parts.iter().any(|part| {
            let rest = part.strip_prefix(&start);
            rest.is_some_and(|rest| match &value {
                Some(value) => rest.starts_with(value),
                // Not a value that was corrected since.
                None => !rest.starts_with('"'),
            })
        })
    });
    let unnamed = unnamed
        .next()
        .map(|(name, _)| format!("{name} is not named"));
    let is_longer = parts.len() > choices.defects.len();
    unnamed.or_else(|| is_longer.then(|| "a corrected annotation is named".to_owned()))
}

/// Returns what is wrong with the statuses of conditions.
fn wrong(set: &Set) -> Option<String> {
    let is =
        |kind: &str, status: &str| of(&set.conditions, kind).is_some_and(|it| it.status == status);
    let available = set.status.available >= i64::from(set.replicas);
    if is("Available", "True") != available || is("Available", "False") == available {
        return Some("Available does not fit".to_owned());
    }
    let states = ["Stalled", "Reconciling", "Progressing"].map(|kind| {
        let condition = of(&set.conditions, kind);
        condition.map_or("", |it| it.status.as_str())
    });
    let known = [
        ["True", "False", "False"],
        ["False", "True", "True"],
        ["False", "False", "True"],
        ["False", "False", "Unknown"],
    ];
    (!known.contains(&states)).then(|| "they contradict each other".to_owned())
}

/// Returns what is wrong with the times of conditions.
fn wrong_times(
    case: &Case<'_>,
    write: &Write<'_>,
    choices: &Choices,
    written: &Set,
) -> Option<String> {
    let known = write.view.set;
    let early = case.early(write.sync.at);
    let is_now = |it: &Condition| {
        let clock = early.as_second()..=write.now.as_second();
        it.time
            .is_some_and(|time| clock.contains(&time.as_second()))
    };
    for condition in &written.conditions {
        let earlier = of(&known.conditions, &condition.kind);
        let is_kept = if condition.kind == "Reconciling" {
            let work = |it: &Condition| AT_WORK.contains(&it.reason.as_str());
            let same = earlier.is_some_and(|it| work(it) == work(condition));
            same && !(work(condition) && has_progressed(known, written))
        } else {
            earlier.is_some_and(|it| it.status == condition.status)
        };
        let is_right = if is_kept {
            earlier.and_then(|it| it.time) == condition.time
        } else {
            is_now(condition)
        };
        if !is_right {
            return Some(format!("{} has a wrong time", condition.kind));
        }
    }
    wrong_deadline(early, write, choices, written)
}

/// Returns what is wrong with the deadline.
fn wrong_deadline(
    early: Timestamp,
    write: &Write<'_>,
    choices: &Choices,
    written: &Set,
) -> Option<String> {
    let reconciling = of(&written.conditions, "Reconciling")?;
    let deadline = choices.deadline?;
    let due = reconciling.time?.checked_add(deadline).ok()?;
    // A stalled rollout that is paused stays so, whatever the time.
    if reconciling.reason == EXCEEDED && due > write.now && !choices.pauses_late {
        return Some("the deadline has not passed".to_owned());
    }
    let is_working = reconciling.status == "True";
    (is_working && due <= early).then(|| "the deadline has passed".to_owned())
}

/// Reports whether a status shows progress since another one.
fn has_progressed(known: &Set, written: &Set) -> bool {
    let (before, after) = (&known.status, &written.status);
    let distance = |it: i64| it.abs_diff(i64::from(known.replicas));
    after.observed_generation > before.observed_generation
        || after.update_revision != before.update_revision
        || after.updated > before.updated
        || after.available > before.available
        || distance(after.replicas) < distance(before.replicas)
}
