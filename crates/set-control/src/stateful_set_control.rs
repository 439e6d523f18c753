//! Update of one set: revisions, pods, status, history.
//!
//! Upstream: `stateful_set_control.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    Conditions, RecreateProgress, StatefulSet, StatefulSetStatus,
};
use statefulset_history::{History, RevisionData, sort_controller_revisions};
use statefulset_pod_control::StatefulPodControl;

use crate::error::Error;
use crate::outcome::SyncOutcome;
use crate::recreate::report;
use crate::replicas::{ReplicaProcessor, Replicas, SetRevision};
use crate::revisions::{
    CurrentAndUpdate, SemanticMatches, get_stateful_set_revisions, known_revisions,
};
use crate::rolling_update::{Plan, delete_outdated_pods, get_stateful_set_max_unavailable, plan};
use crate::stateful_set_status_updater::StatusUpdater;
use crate::status::{complete_update, inconsistent_status, update_status};
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

/// Brings sets to their wanted state, step by step.
///
/// Upstream: `StatefulSetControlInterface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StatefulSetControl: Send + Sync {
    /// Takes one step for a set. `revisions` come from [`Self::list_revisions`], `pods` are those
    /// that the set controls; `now` decides availability.
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        revisions: Vec<Arc<ControllerRevision>>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome;

    /// Returns the revisions that the set's selector selects and that the set or no object
    /// controls, in no particular order.
    ///
    /// # Errors
    ///
    /// The set's selector can't be compiled.
    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error>;

    /// Makes the set the controller of orphaned revisions, from the oldest to the newest, and
    /// replaces them with the adopted revisions. Stops at the first failure.
    ///
    /// # Errors
    ///
    /// A revision can't be written.
    async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &mut [Arc<ControllerRevision>],
    ) -> Result<(), Error>;
}

/// The default implementation.
///
/// Upstream: `defaultStatefulSetControl`.
pub struct DefaultStatefulSetControl {
    pod_control: Arc<StatefulPodControl>,
    status_updater: Arc<dyn StatusUpdater>,
    history: Arc<dyn History>,
    gates: FeatureGates,
    semantic_matches: SemanticMatches,
}

impl DefaultStatefulSetControl {
    /// Creates a set control.
    ///
    /// Upstream: `NewDefaultStatefulSetControl`.
    pub fn new(
        pod_control: Arc<StatefulPodControl>,
        status_updater: Arc<dyn StatusUpdater>,
        history: Arc<dyn History>,
        gates: FeatureGates,
    ) -> Self {
        Self {
            pod_control,
            status_updater,
            history,
            gates,
            semantic_matches: SemanticMatches::new(),
        }
    }

    async fn get_revisions(
        &self,
        set: &StatefulSet,
        sorted: &[Arc<ControllerRevision>],
    ) -> Result<CurrentAndUpdate, Error> {
        let template = &set.spec.template;
        if let Some(known) = known_revisions(set, self.gates, sorted) {
            return Ok(known);
        }
        let data = if self.gates.revisions_record_null_creation_time() {
            RevisionData::with_null_creation_time(template)?
        } else {
            RevisionData::new(template)?
        };
        let semantic = self.gates.stateful_set_semantic_revision_comparison;
        let semantic = semantic.then_some(&self.semantic_matches);
        let found = get_stateful_set_revisions(&*self.history, semantic, set, &data, sorted);
        let found = found.await?;
        if sorted
            .last()
            .is_some_and(|latest| Arc::ptr_eq(latest, &found.update))
        {
            template.memo().set_equals_latest(self.gates, sorted);
        }
        Ok(found)
    }

    /// Updates the pods and records the resulting status, even after a failure.
    ///
    /// Upstream: `performUpdate`.
    async fn perform_update(
        &self,
        set: &StatefulSet,
        revisions: &CurrentAndUpdate,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<SyncOutcome, Error> {
        let gates = self.gates;
        let pod_control = self.pod_control.for_sync(set);
        let processor = ReplicaProcessor {
            set,
            pod_control: &pod_control,
            now,
            scales_down_first: gates.preview_parallel_scale_down_first,
        };
        let (mut outcome, mut status) =
            update_stateful_set(&processor, revisions, pods, gates).await?;
        let is_complete = complete_update(set, &mut status, gates.completes_every_strategy());
        if is_complete && gates.stateful_set_recreate_strategy && processor.recreates() {
            report(&mut status, RecreateProgress::Completed, now);
        }
        let gate = gates.max_unavailable_stateful_set;
        let max_unavailable = gate.then(|| get_stateful_set_max_unavailable(set));
        let recorded = match max_unavailable.transpose() {
            Ok(max_unavailable) => {
                outcome.max_unavailable = max_unavailable;
                self.update_stateful_set_status(set, &status).await
            }
            Err(error) => Err(error.into()),
        };
        outcome.status = Some(status);
        if let (Some(_), Err(error)) = (&outcome.error, &recorded) {
            tracing::error!(stateful_set = %set.key(), %error, "could not update status");
        }
        outcome.error = outcome.error.or(recorded.err());
        Ok(outcome)
    }

    /// Deletes the oldest revisions beyond the limit that neither the status nor a pod uses; a
    /// negative limit keeps all. Stops at the first failure.
    ///
    /// Upstream: `truncateHistory`.
    async fn truncate_history(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        sorted: &[Arc<ControllerRevision>],
        used: Option<&CurrentAndUpdate>,
    ) -> Result<(), Error> {
        let in_status = used.map(|used| [&*used.current.name, &*used.update.name]);
        let in_status: Vec<&str> = in_status.into_iter().flatten().collect();
        let limit = set.spec.revision_history_limit;
        for revision in revisions_to_delete(sorted, pods, &in_status, limit) {
            self.history.delete_controller_revision(revision).await?;
        }
        Ok(())
    }

    /// Writes the status if it differs from the recorded one.
    ///
    /// Upstream: `updateStatefulSetStatus`.
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error> {
        if !inconsistent_status(set, status) {
            return Ok(());
        }
        let updated = self.status_updater.update_stateful_set_status(set, status);
        updated.await.map_err(Error::Status)
    }
}

#[async_trait]
impl StatefulSetControl for DefaultStatefulSetControl {
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        mut revisions: Vec<Arc<ControllerRevision>>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome {
        sort_controller_revisions(&mut revisions);
        let (updated, used) = match self.get_revisions(set, &revisions).await {
            Ok(used) => (self.perform_update(set, &used, pods, now).await, Some(used)),
            Err(error) => (Err(error), None),
        };
        let mut outcome = updated.unwrap_or_else(SyncOutcome::from);
        let truncated = self.truncate_history(set, pods, &revisions, used.as_ref());
        if let Err(error) = truncated.await {
            let errors = outcome.error.into_iter().chain([error]).collect();
            outcome.error = Error::join(errors).err();
        }
        outcome
    }

    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error> {
        let selector = set.spec.selector.compiled()?;
        Ok(self.history.list_controller_revisions(set, selector))
    }

    async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &mut [Arc<ControllerRevision>],
    ) -> Result<(), Error> {
        sort_controller_revisions(revisions);
        for revision in revisions.iter_mut().filter(|it| it.controller.is_none()) {
            let adopted = self.history.adopt_controller_revision(set, revision);
            *revision = adopted.await?;
        }
        Ok(())
    }
}

/// Splits the pods, processes them, and deletes those that the update replaces. Returns the status
/// beside the outcome.
///
/// # Errors
///
/// A revision can't be applied to the set, or its strategy is disabled. No status was computed and
/// no pod changed.
///
/// Upstream: `updateStatefulSet`.
async fn update_stateful_set(
    processor: &ReplicaProcessor<'_>,
    revisions: &CurrentAndUpdate,
    pods: &[Arc<Pod>],
    gates: FeatureGates,
) -> Result<(SyncOutcome, StatefulSetStatus), Error> {
    let (set, now) = (processor.set, processor.now);
    let current = SetRevision::new(set, &revisions.current)?;
    let other = if Arc::ptr_eq(&revisions.current, &revisions.update) {
        None
    } else {
        Some(SetRevision::new(set, &revisions.update)?)
    };
    let update = other.as_ref().unwrap_or(&current);
    if processor.recreates() && gates.freezes_recreate() {
        return Err(processor.refuse_recreate());
    }
    let recorded = &set.status.conditions;
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        current_revision: revisions.current.name.clone(),
        update_revision: revisions.update.name.clone(),
        collision_count: Some(revisions.collision_count),
        // Other writers own the other conditions.
        conditions: if gates.keeps_recreate_conditions() {
            recorded.clone()
        } else {
            Conditions::without_progress(recorded.as_ref())
        },
        ..StatefulSetStatus::default()
    };
    update_status(&mut status, set, pods.iter().map(|pod| &**pod), now);
    let mut outcome = SyncOutcome::default();
    // The garbage collector deletes the pods of a deleted set: no pod is created or deleted here.
    if set.is_deleting() {
        outcome.waiting = Some(Waiting::SetDeleted);
        return Ok((outcome, status));
    }
    let replicas = Replicas::new(set, &current, update, pods, now)?;
    if processor.recreates() && gates.stateful_set_recreate_strategy {
        let recreated = processor.recreate(&replicas, &mut status).await;
        if let Some(outcome) = recreated {
            return Ok((outcome, status));
        }
    }
    let processed = processor.process(&replicas).await;
    update_status(&mut status, set, replicas.pods(), now);
    match processed {
        Err(error) => outcome.error = Some(error),
        Ok(Some(waiting)) if !set.spec.allows_burst() => outcome.waiting = Some(waiting),
        // The next sync creates the other pods; updates follow after that.
        Ok(waiting) if !replicas.is_complete => {
            let created = replicas.last_created();
            outcome.waiting = waiting.or(created);
        }
        Ok(waiting) => {
            outcome.waiting = waiting;
            let wanted = &replicas.wanted;
            match plan(set, wanted, &revisions.update.name, gates, now) {
                Ok(Plan {
                    delete,
                    waiting,
                    unavailable,
                }) => {
                    outcome.unavailable_replicas = unavailable;
                    outcome.waiting = outcome.waiting.or(waiting);
                    let deleted = delete_outdated_pods(processor.pod_control, &delete, &mut status);
                    outcome.error = deleted.await.err();
                }
                Err(error) => outcome.error = Some(error.into()),
            }
        }
    }
    if other.is_none() && outcome.waiting.is_none() && outcome.error.is_none() {
        set.spec.template.memo().forget_applied();
    }
    Ok((outcome, status))
}

/// Returns the revisions to delete, oldest first. `revisions` is sorted from the oldest to the
/// newest; `in_status` names those that the status uses.
fn revisions_to_delete<'a>(
    revisions: &'a [Arc<ControllerRevision>],
    pods: &[Arc<Pod>],
    in_status: &[&str],
    limit: i32,
) -> Vec<&'a Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else {
        return Vec::new();
    };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.revision()).collect();
    live.extend(in_status);
    let mut unused: Vec<&Arc<ControllerRevision>> = revisions
        .iter()
        .filter(|revision| !live.contains(&*revision.name))
        .collect();
    unused.truncate(unused.len().saturating_sub(limit));
    unused
}
