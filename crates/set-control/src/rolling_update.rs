//! Deletion of pods during a rollout.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::int_or_string::IntOrStringError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    StatefulSet, StatefulSetStatus, UpdateStrategyType,
};
use statefulset_pod_control::{PodSlot, SetPodControl};

use crate::error::Error;
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

/// Next step of a rollout.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Pods to delete, in this order.
    pub(crate) delete: Vec<Arc<Pod>>,
    /// The pod that the rollout waits for, with the reason.
    pub(crate) waiting: Option<Waiting>,
    /// Number of unavailable pods, if counted.
    pub(crate) unavailable: Option<usize>,
}

/// Plans the next step of a rollout: the outdated pods to delete now.
///
/// # Errors
///
/// `maxUnavailable` is neither a number nor a percentage.
///
/// Upstream: `updateStatefulSet`, whose last part chooses and deletes the pods.
pub(crate) fn plan(
    set: &StatefulSet,
    replicas: &[PodSlot],
    update_revision: &str,
    gates: FeatureGates,
    now: Timestamp,
) -> Result<Plan, IntOrStringError> {
    let mut plan = Plan::default();
    match set.spec.update_strategy.strategy_type {
        // The pods were all deleted before.
        UpdateStrategyType::Recreate if gates.stateful_set_recreate_strategy => {}
        // The user deletes the pods.
        UpdateStrategyType::OnDelete => {
            let mut pods = replicas.iter();
            let outdated = pods.find_map(|slot| outdated(slot, update_revision));
            plan.waiting = outdated.map(|pod| Waiting::PodDeletionByUser((&pod.name).into()));
        }
        _ if gates.max_unavailable_stateful_set => {
            let outside = gates.replaces_unavailable_pods_outside_budget();
            return update_stateful_set_after_invariant_established(
                set,
                replicas,
                update_revision,
                outside,
                now,
            );
        }
        // One pod at a time, from the largest ordinal down to the partition.
        _ => {
            for slot in candidates(set, replicas) {
                // An outdated pod is deleted even if it is unhealthy: a broken pod must not block
                // its own repair.
                if let Some(pod) = outdated(slot, update_revision) {
                    plan.waiting = Some(Waiting::PodUpdated((&pod.name).into()));
                    plan.delete.push(pod);
                    break;
                }
                // An updated pod must be available before the next one is deleted.
                if slot.is_unavailable(set.spec.min_ready_seconds, now) {
                    plan.waiting = Some(Waiting::UpdatedPodUnavailable(slot.name().into()));
                    break;
                }
            }
        }
    }
    Ok(plan)
}

/// Plans the next step of a rollout under `maxUnavailable`, from the largest ordinal down to the
/// partition. Unavailable pods count against the budget. With `replace_outside_budget`, a
/// `Parallel` set replaces all its unavailable outdated pods at once, before it spends the
/// rest of the budget on available ones.
///
/// # Errors
///
/// `maxUnavailable` is neither a number nor a percentage.
///
/// Upstream: `updateStatefulSetAfterInvariantEstablished`.
pub(crate) fn update_stateful_set_after_invariant_established(
    set: &StatefulSet,
    replicas: &[PodSlot],
    update_revision: &str,
    replace_outside_budget: bool,
    now: Timestamp,
) -> Result<Plan, IntOrStringError> {
    let max_unavailable = get_stateful_set_max_unavailable(set)?;
    let is_unavailable = |slot: &PodSlot| slot.is_unavailable(set.spec.min_ready_seconds, now);
    // Unavailable pods of either revision count, also those below the partition.
    let unavailable = replicas.iter().filter(|slot| is_unavailable(slot));
    let first = unavailable.clone().next();
    let unavailable = unavailable.count();
    let outside_budget = replace_outside_budget && set.spec.allows_burst();
    let outdated =
        candidates(set, replicas).filter_map(|slot| Some((slot, outdated(slot, update_revision)?)));
    let (outside, inside): (Vec<_>, Vec<_>) =
        outdated.partition(|(slot, _)| outside_budget && is_unavailable(slot));
    let inside = inside
        .into_iter()
        .take(max_unavailable.saturating_sub(unavailable));
    let delete: Vec<Arc<Pod>> = outside
        .into_iter()
        .chain(inside)
        .map(|(_, pod)| pod)
        .collect();
    let waiting = match (delete.first(), first) {
        (Some(pod), _) => Some(Waiting::PodUpdated((&pod.name).into())),
        (None, Some(first)) if unavailable >= max_unavailable => Some(Waiting::UnavailableBudget {
            pod: first.name().into(),
            unavailable,
            max_unavailable,
        }),
        (None, _) => None,
    };
    Ok(Plan {
        delete,
        waiting,
        unavailable: Some(unavailable),
    })
}

/// Maximum number of unavailable pods during an update, at least 1. A percentage refers to the
/// desired pods and is rounded down.
///
/// # Errors
///
/// `maxUnavailable` is neither a number nor a percentage.
///
/// Upstream: `getStatefulSetMaxUnavailable`.
pub(crate) fn get_stateful_set_max_unavailable(
    set: &StatefulSet,
) -> Result<usize, IntOrStringError> {
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    let Some(desired) = rolling_update.and_then(|r| r.max_unavailable.as_ref()) else {
        return Ok(1);
    };
    let count = desired.scaled_value(set.spec.replicas, false)?;
    Ok(usize::try_from(count).unwrap_or(0).max(1))
}

/// Returns the slot's pod if it is outdated and not terminating. In burst mode and without a
/// `rollingUpdate`, this sync may have created it.
fn outdated(slot: &PodSlot, update_revision: &str) -> Option<Arc<Pod>> {
    let pod = slot.pod()?;
    let is_outdated = slot.revision() != update_revision && !pod.is_terminating();
    is_outdated.then(|| Arc::clone(pod))
}

/// Returns the slots from the largest ordinal down to the partition, which is an index.
fn candidates<'a>(
    set: &StatefulSet,
    replicas: &'a [PodSlot],
) -> impl Iterator<Item = &'a PodSlot> + use<'a> {
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    let partition = rolling_update.map_or(0, |rolling_update| rolling_update.partition);
    let partition = usize::try_from(partition).unwrap_or(0);
    replicas.iter().skip(partition).rev()
}

/// Deletes outdated pods; stops at the first failure.
pub(crate) async fn delete_outdated_pods(
    pod_control: &SetPodControl<'_>,
    outdated: &[Arc<Pod>],
    status: &mut StatefulSetStatus,
) -> Result<(), Error> {
    for pod in outdated {
        pod_control.delete_pod_keeping_claims(pod).await?;
        // A deleted pod may have a third revision, so the count could fall below zero.
        status.current_replicas = (status.current_replicas - 1).max(0);
    }
    Ok(())
}
