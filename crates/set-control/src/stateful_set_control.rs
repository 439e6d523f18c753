//! Update of one set: revisions, pods, status, history.
//!
//! Upstream: `stateful_set_control.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    Conditions, RecreateProgress, StatefulSet, StatefulSetStatus,
};
use statefulset_history::{History, sort_controller_revisions};
use statefulset_pod_control::StatefulPodControl;

use crate::error::Error;
use crate::outcome::SyncOutcome;
use crate::replicas::{Replicas, SetRevision, SetSync};
use crate::revisions::{CurrentAndUpdate, get_stateful_set_revisions};
use crate::rolling_update::{delete_outdated_pods, get_stateful_set_max_unavailable, plan};
use crate::run_for_all::Step;
use crate::stateful_set_status_updater::StatusUpdater;
use crate::status::{complete_update, inconsistent_status, update_status};
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

/// Brings sets to their desired state, step by step.
///
/// Upstream: `StatefulSetControlInterface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StatefulSetControl: Send + Sync {
    /// Takes one step for a set. `revisions` come from [`Self::list_revisions`], `pods` are those
    /// that the set controls; `now` decides availability.
    ///
    /// Upstream: `UpdateStatefulSet`.
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
    ///
    /// Upstream: `ListRevisions`.
    fn list_revisions(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error>;

    /// Makes the set the controller of orphaned revisions, from the oldest to the newest, and
    /// replaces them with the adopted revisions. Stops at the first failure.
    ///
    /// # Errors
    ///
    /// A revision can't be written.
    ///
    /// Upstream: `AdoptOrphanRevisions`.
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
        let used = get_stateful_set_revisions(&*self.history, self.gates, set, &revisions);
        let (mut outcome, used) = match used.await {
            Ok(used) => (self.perform_update(set, &used, pods, now).await, Some(used)),
            Err(error) => (error.into(), None),
        };
        let truncated = self.truncate_history(set, pods, &revisions, used.as_ref());
        if let Err(error) = truncated.await {
            let errors = outcome.error.into_iter().chain([error]).collect();
            outcome.error = Aggregate::join(errors).err();
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
        }
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
    ) -> SyncOutcome {
        let updated = self.update_stateful_set(set, revisions, pods, now).await;
        let (mut status, mut outcome) = match updated {
            Ok(updated) => updated,
            Err(error) => return error.into(),
        };
        let recorded = self.update_stateful_set_status(set, &mut status, &mut outcome, now);
        let recorded = recorded.await;
        if let (Some(_), Err(error)) = (&outcome.error, &recorded) {
            tracing::error!(stateful_set = %set.key(), %error, "could not update status");
        }
        outcome.status = Some(status);
        outcome.error = outcome.error.or(recorded.err());
        outcome
    }

    /// Deletes the oldest revisions beyond the limit that neither the status nor a pod uses; a
    /// negative limit keeps all. `revisions` is sorted from the oldest to the newest. Stops at the
    /// first failure.
    ///
    /// Upstream: `truncateHistory`.
    async fn truncate_history(
        &self,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        revisions: &[Arc<ControllerRevision>],
        used: Option<&CurrentAndUpdate>,
    ) -> Result<(), Error> {
        let limit = usize::try_from(set.spec.revision_history_limit).unwrap_or(usize::MAX);
        if revisions.len() <= limit {
            return Ok(());
        }
        let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.revision()).collect();
        if let Some(used) = used {
            live.extend([&*used.current.name, &*used.update.name]);
        }
        let mut unused: Vec<&Arc<ControllerRevision>> = revisions.iter().collect();
        unused.retain(|revision| !live.contains(&*revision.name));
        unused.truncate(unused.len().saturating_sub(limit));
        for revision in unused {
            self.history.delete_controller_revision(revision).await?;
        }
        Ok(())
    }

    /// Brings the pods one step closer to the desired state. Returns the status with the outcome.
    ///
    /// # Errors
    ///
    /// A revision can't be applied to the set, or its strategy is disabled. No status was computed
    /// and no pod changed. Other failures are in the outcome, with a valid status.
    ///
    /// Upstream: `updateStatefulSet`.
    async fn update_stateful_set(
        &self,
        set: &StatefulSet,
        revisions: &CurrentAndUpdate,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<(StatefulSetStatus, SyncOutcome), Error> {
        let sync = SetSync {
            set,
            pod_control: self.pod_control.for_sync(set),
            gates: self.gates,
            now,
        };
        // Missing pods get the template of one of the two revisions.
        let current = SetRevision::new(set, &revisions.current)?;
        let update = SetRevision::new(set, &revisions.update)?;
        if set.spec.recreates() && self.gates.rejects_recreate() {
            return Err(sync.refuse_recreate());
        }
        let mut status = initial_status(set, revisions, self.gates);
        let replicas = Replicas::new(set, &current, &update, pods, now)?;
        let mut outcome = SyncOutcome::default();
        // The garbage collector deletes the pods of a deleted set: no pod is created or deleted here.
        if set.is_deleting() {
            update_status(&mut status, set, pods.iter().map(|pod| &**pod), now);
            outcome.waiting = Some(Waiting::SetDeleted);
            return Ok((status, outcome));
        }
        // Pods without an ordinal don't count. Pods that this sync creates or deletes count in the
        // next sync, whose caches show the change.
        update_status(&mut status, set, replicas.pods(), now);
        let phases = sync.run_phases(&replicas, &mut status, &mut outcome);
        match phases.await {
            Ok(waiting) => outcome.waiting = waiting,
            Err(error) => outcome.error = Some(error),
        }
        let is_settled = outcome.waiting.is_none() && outcome.error.is_none();
        if is_settled && Arc::ptr_eq(&revisions.current, &revisions.update) {
            set.spec.template.memo().forget_applied();
        }
        Ok((status, outcome))
    }

    /// Completes the update if it is due, and writes the status if it differs from the recorded one.
    ///
    /// # Errors
    ///
    /// `maxUnavailable` is neither a number nor a percentage, or the status can't be written.
    ///
    /// Upstream: `updateStatefulSetStatus`.
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        status: &mut StatefulSetStatus,
        outcome: &mut SyncOutcome,
        now: Timestamp,
    ) -> Result<(), Error> {
        let gates = self.gates;
        let is_complete = complete_update(set, status, gates.completes_every_strategy());
        if is_complete && gates.stateful_set_recreate_strategy && set.spec.recreates() {
            status.report(RecreateProgress::Completed, now);
        }
        if gates.max_unavailable_stateful_set {
            outcome.max_unavailable = Some(get_stateful_set_max_unavailable(set)?);
        }
        if !inconsistent_status(set, status) {
            return Ok(());
        }
        let updated = self.status_updater.update_stateful_set_status(set, status);
        updated.await.map_err(Error::Status)
    }
}

/// Returns a status of these revisions that counts no pod.
fn initial_status(
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

impl SetSync<'_> {
    /// Processes the pods, phase by phase: wanted and condemned ones first, the update last, so that
    /// scaling precedes updates. Returns the first reason to wait. `outcome` gets the number of
    /// unavailable pods, if counted.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be read or written, or `maxUnavailable` is neither a number nor a
    /// percentage.
    async fn run_phases(
        &self,
        replicas: &Replicas,
        status: &mut StatefulSetStatus,
        outcome: &mut SyncOutcome,
    ) -> Step {
        if self.set.spec.recreates() && self.gates.stateful_set_recreate_strategy {
            let waiting = self.recreate(replicas, status).await?;
            if waiting.is_some() {
                return Ok(waiting);
            }
        }
        let waiting = self.process(replicas).await?;
        if waiting.is_some() && self.is_monotonic() {
            return Ok(waiting);
        }
        // The next sync creates the other pods; updates follow after that.
        if !replicas.is_complete {
            return Ok(waiting.or_else(|| replicas.waiting_for_last_created()));
        }
        // An available pod of the update revision needs no update. The gate counts them for a metric.
        let is_updated = status.updated_replicas == status.replicas;
        let is_settled = is_updated && replicas.first_unavailable.is_none();
        if is_settled && !self.gates.max_unavailable_stateful_set {
            return Ok(waiting);
        }
        let revision = &*status.update_revision;
        let plan = plan(self.set, &replicas.wanted, revision, self.gates, self.now)?;
        outcome.unavailable_replicas = plan.unavailable;
        delete_outdated_pods(&self.pod_control, &plan.delete, status).await?;
        Ok(waiting.or(plan.waiting))
    }
}
