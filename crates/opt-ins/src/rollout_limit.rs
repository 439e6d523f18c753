//! Rollouts that are paused, or end before their last pod.
//!
//! A limited rollout is one with a higher partition, in memory only: pods below it keep their
//! revision, also when they are lost and created again.

use std::sync::Arc;

use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{RollingUpdate, StatefulSet};
use statefulset_pod_control::stateful_set_utils::ordinal;

use crate::cause::Cause;
use crate::conditions;
use crate::opt_ins::OptIns;
use crate::rollout::{is_rolling, partition};
use crate::values::{DeadlineReaction, RolloutTo};

/// A set whose rollout is limited.
#[derive(Clone, Debug)]
pub struct RolloutLimit {
    /// The set with the partition that follows from the limit.
    pub set: StatefulSet,
    /// The reason for the limit.
    pub cause: Cause,
}

/// Returns the limit of a set's rollout; `None` if nothing limits it beyond its own partition.
///
/// A paused rollout has its partition above the highest pod that isn't updated.
pub fn limit(
    set: &StatefulSet,
    opt_ins: &OptIns,
    pods: &[Arc<Pod>],
    update_revision: &str,
) -> Option<RolloutLimit> {
    if !is_rolling(set) {
        return None;
    }
    let held = is_paused(set, opt_ins).then(|| reached(set, pods, update_revision));
    let cause = if opt_ins.paused {
        Cause::Paused
    } else {
        Cause::ProgressDeadlineExceeded
    };
    let paused = held.map(|partition| (partition, cause));
    let limited = opt_ins.rollout_to.map(|rollout_to| {
        let partition = match rollout_to {
            RolloutTo::Count(count) => set.spec.replicas.saturating_sub(count),
            RolloutTo::Ordinal(ordinal) => ordinal.saturating_sub(set.spec.start_ordinal),
        };
        (
            partition.clamp(0, set.spec.replicas.max(0)),
            Cause::RolloutLimit,
        )
    });
    // At the same partition, the pause is the reason.
    let (limit, cause) = limited.into_iter().chain(paused).max_by_key(|it| it.0)?;
    if limit <= partition(set) {
        return None;
    }
    let mut set = set.clone();
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    let max_unavailable = rolling_update.and_then(|it| it.max_unavailable.clone());
    set.spec.update_strategy.rolling_update = Some(RollingUpdate {
        partition: limit,
        max_unavailable,
    });
    Some(RolloutLimit { set, cause })
}

/// Returns true if no pod may be replaced: the set is paused, or its deadline has passed and pauses it.
pub(crate) fn is_paused(set: &StatefulSet, opt_ins: &OptIns) -> bool {
    let is_late = opt_ins.on_deadline == DeadlineReaction::Pause
        && opt_ins.progress_deadline.is_some()
        && conditions::shows_exceeded_deadline(set);
    opt_ins.paused || is_late
}

/// Returns the index above the highest desired pod that isn't updated: the rollout got there.
fn reached(set: &StatefulSet, pods: &[Arc<Pod>], update_revision: &str) -> i32 {
    let outdated = pods.iter().filter(|pod| pod.revision() != update_revision);
    let indexes = outdated.filter_map(|pod| ordinal(&pod.name)?.index_in(set));
    let highest = indexes.max().and_then(|index| i32::try_from(index).ok());
    highest.map_or(0, |index| index.saturating_add(1))
}
