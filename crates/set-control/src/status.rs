//! When a rollout is complete, and when a status has to be written.

use statefulset_controller_util::stateful_set::{
    StatefulSet, StatefulSetStatus, UpdateStrategyType,
};

#[cfg(test)]
mod tests;

/// Makes the update revision the current one when all wanted pods are updated and ready.
///
/// Upstream: `completeRollingUpdate`.
pub(crate) fn complete_rolling_update(set: &StatefulSet, status: &mut StatefulSetStatus) {
    let replicas = set.spec.replicas;
    if set.spec.update_strategy.strategy_type == UpdateStrategyType::RollingUpdate
        && status.updated_replicas == replicas
        && status.ready_replicas == replicas
        && status.replicas == replicas
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

/// Whether a computed status says anything that the recorded one doesn't. The collision count
/// alone isn't worth a write.
///
/// Upstream: `inconsistentStatus`.
pub(crate) fn is_inconsistent(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    let recorded = &set.status;
    status.observed_generation > recorded.observed_generation
        || status.replicas != recorded.replicas
        || status.current_replicas != recorded.current_replicas
        || status.ready_replicas != recorded.ready_replicas
        || status.updated_replicas != recorded.updated_replicas
        || status.available_replicas != recorded.available_replicas
        || status.current_revision != recorded.current_revision
        || status.update_revision != recorded.update_revision
}
