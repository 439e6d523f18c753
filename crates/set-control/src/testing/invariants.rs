//! Invariants of a set's pods and claims after every step.

use std::sync::Arc;

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    ClaimRetentionPolicyType, StatefulSet, UpdateStrategyType,
};
use statefulset_pod_control::Ordinal;
use statefulset_pod_control::stateful_set_utils::{
    identity_matches, ordinal, persistent_volume_claims, storage_matches,
};

use super::world::World;

#[cfg(test)]
mod tests;

/// Checks an ordered set: no pod runs before its predecessor, no ordinal is missing, and the rules
/// of [`burst`] hold.
///
/// Upstream accepts a missing claim here if scaling down deletes it; that would hide every claim
/// that was never created.
///
/// # Errors
///
/// The violation and its pod.
///
/// Upstream: `assertMonotonicInvariants`.
pub fn monotonic(world: &World) -> Result<(), String> {
    let (set, pods) = (&world.set, world.pods());
    for (index, pod) in pods.iter().enumerate() {
        let desired = Ordinal::of_index(set, index);
        if ordinal(&pod.name) != Some(desired) {
            return Err(format!(
                "pod {} found instead of ordinal {desired}",
                pod.name
            ));
        }
        let before = index.checked_sub(1).map(|before| &pods[before]);
        if let Some(before) = before.filter(|before| !before.is_running_and_ready())
            && pod.is_running_and_ready()
        {
            return Err(format!("pod {} runs before pod {}", pod.name, before.name));
        }
        check_pod(world, pod)?;
    }
    Ok(())
}

/// Checks any set: every pod has its identity, volumes and claims, and the claims have the owners
/// that the retention policy wants.
///
/// # Errors
///
/// The violation and its pod.
///
/// Upstream: `assertBurstInvariants`.
pub fn burst(world: &World) -> Result<(), String> {
    let pods = world.pods();
    pods.iter().try_for_each(|pod| check_pod(world, pod))
}

/// Checks a set during an update: of the lowest pods, the status's current count has the current
/// revision; of the highest, its updated count has the update revision; and the rules of [`burst`]
/// hold.
///
/// # Errors
///
/// The violation and its pod.
///
/// Upstream: `assertUpdateInvariants`.
pub fn update(world: &World) -> Result<(), String> {
    burst(world)?;
    let set = &world.set;
    if set.spec.update_strategy.strategy_type != UpdateStrategyType::RollingUpdate {
        return Ok(());
    }
    let pods = world.pods();
    let status = &set.status;
    let count = |replicas| usize::try_from(replicas).unwrap_or(0);
    let lowest = pods.iter().take(count(status.current_replicas));
    let highest = pods.iter().rev().take(count(status.updated_replicas));
    of_revision(lowest, &status.current_revision)?;
    of_revision(highest, &status.update_revision)
}

fn of_revision<'a>(
    mut pods: impl Iterator<Item = &'a Arc<Pod>>,
    revision: &str,
) -> Result<(), String> {
    match pods.find(|pod| pod.revision() != revision) {
        Some(pod) => Err(format!(
            "pod {} has revision {:?}, not {revision:?}",
            pod.name,
            pod.revision()
        )),
        None => Ok(()),
    }
}

fn check_pod(world: &World, pod: &Pod) -> Result<(), String> {
    let (set, name) = (&world.set, &pod.name);
    let ordinal = ordinal(name).ok_or_else(|| format!("pod {name} has no ordinal"))?;
    if !storage_matches(set, pod) {
        return Err(format!("pod {name} has the wrong volumes"));
    }
    for claim in persistent_volume_claims(set, ordinal) {
        let stored = world
            .objects
            .claims
            .cache()
            .get(set.namespace(), &claim.name);
        let claim = stored.ok_or_else(|| format!("claim {} is missing", claim.name))?;
        check_owners(set, pod, ordinal, &claim.owner_references)
            .map_err(|wrong| format!("claim {}: {wrong}", claim.name))?;
    }
    if !identity_matches(set, pod) {
        return Err(format!("pod {name} has the wrong identity"));
    }
    Ok(())
}

/// Upstream: `checkClaimInvarients`.
fn check_owners(
    set: &StatefulSet,
    pod: &Pod,
    ordinal: Ordinal,
    owners: &[OwnerReference],
) -> Result<(), String> {
    use ClaimRetentionPolicyType::Delete;
    // Owners are set when the pod is processed, which in ordered sets requires a running pod.
    if !pod.is_running_and_ready() {
        return Ok(());
    }
    let policy = set.spec.claim_retention_policy;
    let condemned = ordinal.index_in(set).is_none();
    let desired_pod = policy.when_scaled == Delete && condemned;
    let desired_set = policy.when_deleted == Delete && !desired_pod;
    for (owner, uid, desired) in [
        ("set", set.uid(), desired_set),
        ("pod", &*pod.uid, desired_pod),
    ] {
        let owns = owners.iter().any(|reference| *reference.uid == *uid);
        if owns != desired {
            let kind = if desired { "must" } else { "must not" };
            return Err(format!("its {owner} {kind} own it"));
        }
    }
    Ok(())
}
