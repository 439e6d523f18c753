//! Computed status: counters, completion of a rollout, and the need for a write.

use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    Conditions, StatefulSet, StatefulSetStatus, UpdateStrategyType,
};

use crate::revisions::CurrentAndUpdate;

#[cfg(test)]
mod tests;

/// Returns a status of these revisions that counts no pod.
pub(crate) fn initial_status(
    set: &StatefulSet,
    revisions: &CurrentAndUpdate,
    gates: FeatureGates,
) -> StatefulSetStatus {
    let recorded = set.status.conditions.as_ref();
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        current_revision: revisions.current.name.clone(),
        update_revision: revisions.update.name.clone(),
        collision_count: Some(revisions.collision_count),
        // Other writers own the other conditions.
        conditions: if gates.keeps_recreate_conditions() {
            recorded.cloned()
        } else {
            Conditions::without_progress(recorded)
        },
        ..StatefulSetStatus::default()
    }
}

/// Counts `pods` into `status`, starting at zero. Terminating pods count as existing, ready and
/// available, but for no revision.
///
/// Upstream: `updateStatus` and `computeReplicaStatus`, which counts one list of pods.
pub(crate) fn update_status<'a>(
    status: &mut StatefulSetStatus,
    set: &StatefulSet,
    pods: impl IntoIterator<Item = &'a Pod>,
    now: Timestamp,
) {
    status.replicas = 0;
    status.ready_replicas = 0;
    status.available_replicas = 0;
    status.current_replicas = 0;
    status.updated_replicas = 0;
    // Most sets have only one revision to compare.
    let is_rolled_out = status.current_revision == status.update_revision;
    for pod in pods.into_iter().filter(|pod| pod.is_created()) {
        status.replicas += 1;
        if pod.is_running_and_ready() {
            status.ready_replicas += 1;
            if pod.is_available(set.spec.min_ready_seconds, now) {
                status.available_replicas += 1;
            }
        }
        if !pod.is_terminating() {
            let revision = pod.revision();
            let is_updated = *revision == *status.update_revision;
            status.updated_replicas += i32::from(is_updated);
            let is_current = (is_rolled_out && is_updated) || *revision == *status.current_revision;
            status.current_replicas += i32::from(is_current);
        }
    }
}

/// Makes the update revision the current one once all desired pods are updated and ready. Versions
/// before 1.37 complete only rolling updates. Returns true if the update is complete.
///
/// Upstream: `completeRollingUpdate`; since 1.37 `completeUpdate`.
pub(crate) fn complete_update(
    set: &StatefulSet,
    status: &mut StatefulSetStatus,
    every_strategy: bool,
) -> bool {
    let replicas = set.spec.replicas;
    let strategy = set.spec.update_strategy.strategy_type;
    let is_complete = (every_strategy || strategy == UpdateStrategyType::RollingUpdate)
        && status.updated_replicas == replicas
        && status.ready_replicas == replicas
        && status.replicas == replicas;
    if is_complete {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
    is_complete
}

/// True if the computed status differs from the recorded one in more than the collision count and
/// the times of conditions, which alone cause no write.
///
/// Upstream: `inconsistentStatus`.
pub(crate) fn inconsistent_status(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    let recorded = &set.status;
    status.observed_generation > recorded.observed_generation
        || status.replicas != recorded.replicas
        || status.current_replicas != recorded.current_replicas
        || status.ready_replicas != recorded.ready_replicas
        || status.updated_replicas != recorded.updated_replicas
        || status.available_replicas != recorded.available_replicas
        || status.current_revision != recorded.current_revision
        || status.update_revision != recorded.update_revision
        || Conditions::differ(status.conditions.as_ref(), recorded.conditions.as_ref())
}
