//! The update strategy `Recreate`: deletion of all outdated pods before any pod is created.
//!
//! Upstream: `stateful_set_control.go` of v1.37.

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::{RecreateProgress, StatefulSet, StatefulSetStatus};
use statefulset_pod_control::{PodSlot, SetPodControl};

use crate::error::Error;
use crate::kept_claims::release_kept_claims;
use crate::replicas::Replicas;
use crate::run_for_all::{MAX_BATCH_SIZE, Step, run_batch};
use crate::waiting::Waiting;

/// Reason of the event about a set whose strategy is disabled.
const UNKNOWN_STRATEGY: &str = "UnknownStrategy";

/// Deletes every outdated pod, desired or condemned, in batches under either policy, and records
/// the progress in the status. Returns the reason to wait as long as an outdated pod exists:
/// nothing else happens in that sync.
///
/// Unlike upstream, keeps the claims that the set keeps: removes desired pods from the owners of
/// their claims before the first deletion, and reads the live set before it deletes a condemned pod.
///
/// # Errors
///
/// A pod or a claim can't be written.
pub(crate) async fn recreate(
    set: &StatefulSet,
    control: &SetPodControl<'_>,
    replicas: &Replicas,
    status: &mut StatefulSetStatus,
    now: Timestamp,
) -> Step {
    let deleted = delete_old_pods(set, control, replicas, &status.update_revision);
    let waiting = deleted.await?;
    if waiting.is_some() {
        status.report(RecreateProgress::DeletingOldPods, now);
    } else if status.current_revision != status.update_revision {
        status.report(RecreateProgress::WaitingForNewPods, now);
    }
    Ok(waiting)
}

/// Deletes the outdated pods, and returns the first one, terminating or not. Batch boundaries count
/// all pods, desired and condemned, so up-to-date pods leave gaps.
async fn delete_old_pods(
    set: &StatefulSet,
    control: &SetPodControl<'_>,
    replicas: &Replicas,
    update_revision: &str,
) -> Step {
    let (desired, condemned) = (&replicas.desired, &replicas.condemned);
    let end = usize::try_from(set.spec.replicas).unwrap_or(0);
    let pods: Vec<(usize, &PodSlot)> = desired
        .iter()
        .filter_map(|slot| Some((slot.ordinal().index_in(set)?, slot)))
        .chain((end..).zip(condemned))
        .filter(|(_, slot)| is_old(slot, update_revision))
        .collect();
    if pods.is_empty() {
        return Ok(None);
    }
    // The sync ends after the deletions, but claims that the set keeps must outlive all pods.
    release_kept_claims(set, control, desired, condemned).await?;
    let mut waiting = None;
    for batch in pods.chunk_by(|(one, _), (other, _)| batch_of(*one) == batch_of(*other)) {
        let deleted = run_batch(batch, |(_, slot)| delete_old_pod(set, control, slot));
        waiting = waiting.or(deleted.await?);
    }
    Ok(waiting)
}

/// Deletes an old pod unless it is terminating, and returns it.
async fn delete_old_pod(set: &StatefulSet, control: &SetPodControl<'_>, slot: &PodSlot) -> Step {
    let Some(pod) = slot.existing() else {
        return Ok(None);
    };
    if !pod.is_terminating() {
        if slot.ordinal().index_in(set).is_some() {
            control.delete_pod_keeping_claims(pod).await?;
        } else {
            control.delete_condemned_pod(pod).await?;
        }
    }
    Ok(Some(Waiting::OldPodRemoval((&pod.name).into())))
}

/// Records that the set's strategy is disabled, and returns the error.
pub(crate) fn refuse_recreate(set: &StatefulSet, control: &SetPodControl<'_>) -> Error {
    let error = Error::RecreateDisabled(set.key());
    control.events().warn(UNKNOWN_STRATEGY, &error.to_string());
    error
}

/// Returns true for an existing pod of another revision.
fn is_old(slot: &PodSlot, update_revision: &str) -> bool {
    let pod = slot.existing().filter(|pod| pod.is_created());
    pod.is_some_and(|pod| pod.revision() != update_revision)
}

/// Returns the number of the batch that contains this position of a list.
fn batch_of(position: usize) -> usize {
    /// Positions in the growing batches of 1, 2, 4, … 256 pods.
    const GROWING: usize = (1 << 9) - 1;
    match position.checked_sub(GROWING) {
        None => (position + 1).ilog2() as usize,
        Some(rest) => 9 + rest / MAX_BATCH_SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_with_gaps_are_those_of_the_whole_list() {
        let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89];
        let mut position = 0;
        for (batch, size) in sizes.into_iter().enumerate() {
            for _ in 0..size {
                assert_eq!(batch_of(position), batch, "{position}");
                position += 1;
            }
        }
    }
}
