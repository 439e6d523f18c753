//! The update strategy `Recreate`: deletion of all outdated pods before any pod is created.
//!
//! Upstream: `stateful_set_control.go` of v1.37.

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::{
    Conditions, RecreateProgress, StatefulSet, StatefulSetStatus, UpdateStrategyType,
};
use statefulset_pod_control::PodSlot;

use crate::error::Error;
use crate::replicas::{Replicas, SetSync};
use crate::run_for_all::{MAX_BATCH_SIZE, Step, run_batch};
use crate::waiting::Waiting;

/// Reason of the event about a set whose strategy is disabled.
const UNKNOWN_STRATEGY: &str = "UnknownStrategy";

/// Returns true if the set has the strategy `Recreate`.
pub(crate) fn recreates(set: &StatefulSet) -> bool {
    set.spec.update_strategy.strategy_type == UpdateStrategyType::Recreate
}

impl SetSync<'_> {
    /// Deletes every outdated pod, wanted or condemned, in batches under either policy, and records
    /// the progress in the status. Returns the reason to wait as long as an outdated pod exists:
    /// nothing else happens in that sync.
    ///
    /// Unlike upstream, keeps the claims that the set keeps: removes wanted pods from the owners of
    /// their claims before the first deletion, and reads the live set before it deletes a condemned
    /// pod.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be written.
    pub(crate) async fn recreate(
        &self,
        replicas: &Replicas,
        status: &mut StatefulSetStatus,
    ) -> Step {
        let deleted = self.delete_old_pods(replicas, &status.update_revision);
        let waiting = deleted.await?;
        if waiting.is_some() {
            report(status, RecreateProgress::DeletingOldPods, self.now);
        } else if status.current_revision != status.update_revision {
            report(status, RecreateProgress::WaitingForNewPods, self.now);
        }
        Ok(waiting)
    }

    /// Deletes the outdated pods, and returns the first one, terminating or not.
    async fn delete_old_pods(&self, replicas: &Replicas, update_revision: &str) -> Step {
        let is_old = |slot: &&PodSlot| is_old(slot, update_revision);
        let in_range = |slot: &PodSlot| slot.ordinal().index_in(self.set);
        let wanted = replicas.wanted.iter().filter(is_old);
        let wanted = wanted.filter_map(|slot| Some((in_range(slot)?, (slot, true))));
        let end = usize::try_from(self.set.spec.replicas).unwrap_or(0);
        let condemned = (end..).zip(&replicas.condemned);
        let condemned = condemned.filter(|(_, slot)| is_old(slot));
        let condemned = condemned.map(|(position, slot)| (position, (slot, false)));
        let pods: Vec<_> = wanted.chain(condemned).collect();
        if pods.is_empty() {
            return Ok(None);
        }
        // The sync ends after the deletions, but claims that the set keeps must outlive all pods.
        let (wanted, condemned) = (&replicas.wanted, &replicas.condemned);
        self.release_kept_claims(wanted, condemned).await?;
        run_with_gaps(&pods, |(_, (slot, is_wanted))| {
            self.delete_old_pod(slot, *is_wanted)
        })
        .await
    }

    /// Deletes an old pod unless it is terminating, and returns it.
    async fn delete_old_pod(&self, slot: &PodSlot, is_wanted: bool) -> Step {
        let Some(pod) = slot.existing() else {
            return Ok(None);
        };
        if !pod.is_terminating() {
            if is_wanted {
                self.pod_control.delete_wanted_pod(pod).await?;
            } else {
                self.pod_control.delete_condemned_pod(pod).await?;
            }
        }
        Ok(Some(Waiting::OldPodRemoval((&pod.name).into())))
    }

    /// Records that the set's strategy is disabled, and returns the error.
    pub(crate) fn refuse_recreate(&self) -> Error {
        let set = self.set.key().to_string();
        let error = Error::RecreateDisabled { set };
        self.pod_control.warn(UNKNOWN_STRATEGY, &error.to_string());
        error
    }
}

/// Returns true for an existing pod of another revision.
fn is_old(slot: &PodSlot, update_revision: &str) -> bool {
    let pod = slot.existing().filter(|pod| pod.is_created());
    pod.is_some_and(|pod| pod.revision() != update_revision)
}

/// Records the progress of the update as a condition.
pub(crate) fn report(status: &mut StatefulSetStatus, progress: RecreateProgress, now: Timestamp) {
    let conditions = Conditions::with_progress(status.conditions.as_ref(), progress, now);
    status.conditions = Some(conditions);
}

/// Runs a step for every item of a list with gaps: `items` holds the others with their positions,
/// in ascending order. The batches are those of the whole list.
///
/// # Errors
///
/// All failures of the first failed batch.
async fn run_with_gaps<'a, T, Fut: Future<Output = Step>>(
    items: &'a [(usize, T)],
    step: impl Fn(&'a (usize, T)) -> Fut,
) -> Step {
    let mut waiting = None;
    for batch in items.chunk_by(|(one, _), (other, _)| batch_of(*one) == batch_of(*other)) {
        waiting = waiting.or(run_batch(batch, &step).await?);
    }
    Ok(waiting)
}

/// Returns the number of the batch that contains this position of a list.
fn batch_of(position: usize) -> usize {
    let (mut batch, mut size, mut end) = (0, 1, 1);
    while size < MAX_BATCH_SIZE {
        if position < end {
            return batch;
        }
        batch += 1;
        size = (2 * size).min(MAX_BATCH_SIZE);
        end += size;
    }
    // The rest of the batches have the maximum size.
    batch + (position + MAX_BATCH_SIZE).saturating_sub(end) / MAX_BATCH_SIZE
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
