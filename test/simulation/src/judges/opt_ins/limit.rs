//! The partition that follows from a pause, and from a limit of the rollout.

use std::sync::Arc;

use super::choices::{Choices, RolloutTo};
use super::{Case, choices};
use crate::agent::Process;
use crate::views::{Pod, Set};

/// The limit of a rollout.
pub(super) struct Limit {
    /// Number of pods that keep their revision.
    pub(super) partition: u32,
    /// The reason, as conditions name it; none for the set's own partition.
    pub(super) reason: Option<&'static str>,
}

/// Returns the number of pods that keep their revision, from the lowest ordinal on: for a process and
/// with these pods and update revision.
pub(in super::super) fn partition<'a>(
    case: &Case<'_>,
    process: Process,
    set: &Set,
    members: impl Iterator<Item = &'a Arc<Pod>>,
    update: Option<&str>,
) -> u32 {
    let choices = choices(case, process, set);
    choices.map_or(set.partition, |choices| {
        limit(&choices, set, members, update).partition
    })
}

pub(super) fn limit<'a>(
    choices: &Choices,
    set: &Set,
    members: impl Iterator<Item = &'a Arc<Pod>>,
    update: Option<&str>,
) -> Limit {
    let own = Limit {
        partition: set.partition,
        reason: None,
    };
    if set.is_on_delete() {
        return own;
    }
    let paused = is_paused(choices, set).then(|| {
        let outdated = members.filter(|pod| Some(pod.revision.as_str()) != update);
        let ordinals = outdated.filter_map(|pod| pod.ordinal(&set.name));
        let above = ordinals.filter(|it| set.range().contains(it)).max();
        above.map_or(0, |it| it - set.start + 1)
    });
    let pause = if choices.paused {
        "Paused"
    } else {
        "ProgressDeadlineExceeded"
    };
    let limited = choices.rollout_to.map(|end| {
        let partition = match end {
            RolloutTo::Count(count) => set.replicas.saturating_sub(count),
            RolloutTo::Ordinal(ordinal) => ordinal.saturating_sub(set.start),
        };
        partition.min(set.replicas)
    });
    let limits = [(limited, "RolloutLimit"), (paused, pause)];
    let limits = limits.into_iter().filter_map(|(partition, reason)| {
        let reason = Some(reason);
        partition.map(|partition| Limit { partition, reason })
    });
    let limits = limits.filter(|it| it.partition > own.partition);
    limits.max_by_key(|it| it.partition).unwrap_or(own)
}

/// Reports whether no pod may be replaced: the set is paused, or late and pauses then.
pub(super) fn is_paused(choices: &Choices, set: &Set) -> bool {
    let is_late = choices.pauses_late && choices.deadline.is_some() && shows_exceeded(set);
    choices.paused || is_late
}

/// Reports whether the status of this generation says that the deadline has passed.
fn shows_exceeded(set: &Set) -> bool {
    let mut conditions = set.conditions.iter();
    set.status.observed_generation == set.generation
        && conditions.any(|it| {
            it.kind == "Stalled" && it.status == "True" && it.reason == "ProgressDeadlineExceeded"
        })
}
