//! Update of one set: revisions, pods, status, history.
//!
//! Upstream: `stateful_set_control.go`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use kube_apimachinery::pod::PodPhase;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{RecreateProgress, StatefulSet, StatefulSetStatus};
use statefulset_history::{History, sort_controller_revisions};
use statefulset_opt_ins::{
    Begun, ClaimRefusals, Flight, InPlaceUpdate, OptIns, Opted, Removable, Rollout, SyncRules,
    Synced, Wait, chosen, conditions, rollout_limit,
};
use statefulset_pod_control::stateful_set_utils::{identity_matches, storage_matches};
use statefulset_pod_control::{PodSlot, SetPodControl, StatefulPodControl};

use crate::error::Error;
use crate::kept_claims::release_kept_claims;
use crate::outcome::SyncOutcome;
use crate::recreate::{recreate, refuse_recreate};
use crate::replicas::{Replicas, SetRevision};
use crate::revisions::{CurrentAndUpdate, get_stateful_set_revisions, truncate_history};
use crate::rolling_update::{delete_outdated_pods, get_stateful_set_max_unavailable, plan};
use crate::run_for_all::{Step, run_for_all};
use crate::stateful_set_status_updater::StatusUpdater;
use crate::status::{complete_update, inconsistent_status, initial_status, update_status};
use crate::waiting::Waiting;

#[cfg(any(test, feature = "testing"))]
pub use interface::MockStatefulSetControl;
pub use interface::StatefulSetControl;

mod interface;
#[cfg(test)]
mod tests;

/// Reason of the event about annotations that can't be used.
const INVALID_ANNOTATION: &str = "InvalidAnnotation";

/// The default implementation.
///
/// Upstream: `defaultStatefulSetControl`.
pub struct DefaultStatefulSetControl {
    pod_control: Arc<StatefulPodControl>,
    status_updater: Arc<dyn StatusUpdater>,
    history: Arc<dyn History>,
    rules: SyncRules,
    refusals: ClaimRefusals,
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
        let used = get_stateful_set_revisions(&*self.history, self.rules.gates, set, &revisions);
        let (mut outcome, used) = match used.await {
            Ok(used) => {
                let updated = self.perform_update(set, &used, &revisions, pods, now);
                (updated.await, Some(used))
            }
            Err(error) => (error.into(), None),
        };
        let truncated = truncate_history(&*self.history, set, pods, &revisions, used.as_ref());
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
        rules: impl Into<SyncRules>,
    ) -> Self {
        Self {
            pod_control,
            status_updater,
            history,
            rules: rules.into(),
            refusals: ClaimRefusals::default(),
        }
    }

    /// Updates the pods and records the resulting status, even after a failure.
    ///
    /// Upstream: `performUpdate`.
    async fn perform_update(
        &self,
        set: &StatefulSet,
        revisions: &CurrentAndUpdate,
        recorded: &[Arc<ControllerRevision>],
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> SyncOutcome {
        let opt_ins = chosen(set, &self.rules);
        let limit = rollout_limit::limit(set, &opt_ins, pods, &revisions.update.name);
        let mut pod_control = self.pod_control.for_sync(set);
        pod_control.sizes = Some(&opt_ins.claim_sizes);
        let sync = SetSync {
            set: limit.as_ref().map_or(set, |limit| &limit.set),
            pod_control,
            refusals: &self.refusals,
            gates: self.rules.gates,
            opt_ins: &opt_ins,
            recorded,
            now,
        };
        let (mut status, mut outcome) = match sync.update_stateful_set(revisions, pods).await {
            Ok(updated) => updated,
            Err(error) => return error.into(),
        };
        if sync.gates.allows_opt_ins() && !set.is_deleting() {
            let synced = Synced {
                set: sync.set,
                opt_ins: &opt_ins,
                limit: limit.as_ref().map(|limit| limit.cause),
                pods,
                status: &status,
            };
            let detail = outcome.waiting.as_ref().map(ToString::to_string);
            let situation = synced.situation(outcome.awaited(), detail.unwrap_or_default());
            outcome.situation = Some(situation);
        }
        let recorded = self.update_stateful_set_status(set, &sync, &mut status, &mut outcome);
        let recorded = recorded.await;
        if let (Some(_), Err(error)) = (&outcome.error, &recorded) {
            tracing::error!(stateful_set = %set.key(), %error, "could not update status");
        }
        outcome.status = Some(status);
        outcome.error = outcome.error.or(recorded.err());
        outcome
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
        sync: &SetSync<'_>,
        status: &mut StatefulSetStatus,
        outcome: &mut SyncOutcome,
    ) -> Result<(), Error> {
        let SetSync { gates, now, .. } = *sync;
        let is_complete = complete_update(set, status, gates.completes_every_strategy());
        if is_complete && gates.stateful_set_recreate_strategy && set.spec.recreates() {
            status.report(RecreateProgress::Completed, now);
        }
        let situation = outcome.situation.as_ref();
        let report = conditions::report(set, sync.opt_ins, gates, status, situation, now);
        outcome.requeue_within(report.sync_after);
        if gates.max_unavailable_stateful_set {
            outcome.max_unavailable = Some(get_stateful_set_max_unavailable(set)?);
        }
        if !inconsistent_status(set, status) {
            return Ok(());
        }
        let updated = self.status_updater.update_stateful_set_status(set, status);
        updated.await.map_err(Error::Status)?;
        if let Some(defects) = report.new_defects {
            sync.pod_control.events().warn(INVALID_ANNOTATION, &defects);
        }
        Ok(())
    }
}

/// One sync of a set: creates, repairs and deletes its pods.
struct SetSync<'a> {
    /// The set, with the partition that follows from a limit of its rollout.
    set: &'a StatefulSet,
    pod_control: SetPodControl<'a>,
    refusals: &'a ClaimRefusals,
    gates: FeatureGates,
    /// The set's choices beyond upstream; by default none.
    opt_ins: &'a OptIns,
    /// The set's revisions at the start of the sync.
    recorded: &'a [Arc<ControllerRevision>],
    now: Timestamp,
}

impl SetSync<'_> {
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
        revisions: &CurrentAndUpdate,
        pods: &[Arc<Pod>],
    ) -> Result<(StatefulSetStatus, SyncOutcome), Error> {
        let (set, gates, now) = (self.set, self.gates, self.now);
        // Missing pods get the template of one of the two revisions.
        let current = SetRevision::new(set, &revisions.current)?;
        let update = SetRevision::new(set, &revisions.update)?;
        if set.spec.recreates() && gates.rejects_recreate() {
            return Err(refuse_recreate(set, &self.pod_control));
        }
        let mut status = initial_status(set, revisions, gates);
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
        let in_place = InPlaceUpdate {
            opted: self.opted(),
            rollout: self.rollout(&replicas, &revisions.update.name),
            update: &revisions.update,
            recorded: self.recorded,
            is_enabled: gates.stateful_set_in_place_update,
        };
        let mut flight = in_place.advance().await;
        outcome.requeue_within(flight.sync_after);
        let advanced = flight.failure().map_err(Error::from);
        let phases = self.run_phases(&replicas, in_place, flight, &mut status, &mut outcome);
        let phases = phases.await;
        let withdrawn = self.withdraw_requests(&replicas, &status.update_revision);
        let withdrawn = withdrawn.await;
        let growth = self.opted().grow_claims(in_place.rollout).await;
        let grown = outcome.note_growth(growth, &mut status, now);
        match (phases, withdrawn.and(advanced).and(grown)) {
            (Ok(waiting), Ok(())) => outcome.waiting = waiting,
            (Err(error), _) | (Ok(_), Err(error)) => outcome.error = Some(error),
        }
        outcome.requeue_within(self.opted().next_opening(replicas.pods()));
        let is_settled = outcome.waiting.is_none() && outcome.error.is_none();
        if is_settled && Arc::ptr_eq(&revisions.current, &revisions.update) {
            set.spec.template.memo().forget_applied();
        }
        Ok((status, outcome))
    }

    /// Processes the pods, phase by phase: desired and condemned ones first, the update last, so
    /// that scaling precedes updates. Returns the first reason to wait. `outcome` gets the number
    /// of unavailable pods, if counted.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be read or written, or `maxUnavailable` is neither a number nor a
    /// percentage.
    async fn run_phases(
        &self,
        replicas: &Replicas,
        in_place: InPlaceUpdate<'_>,
        flight: Flight,
        status: &mut StatefulSetStatus,
        outcome: &mut SyncOutcome,
    ) -> Step {
        if self.set.spec.recreates() && self.gates.stateful_set_recreate_strategy {
            let opted = self.opted();
            let held = opted.closed_for_any(in_place.rollout, &replicas.condemned);
            if let Some(held) = held.await? {
                return Ok(Some(held.into()));
            }
            let waiting = recreate(self.set, &self.pod_control, replicas, status, self.now).await?;
            if waiting.is_some() {
                return Ok(waiting);
            }
        }
        let rollout = in_place.rollout;
        let waiting = self.process(replicas).await?;
        if waiting.is_some() && self.is_monotonic() {
            let begun = flight.given_up_at(waiting.as_ref().and_then(Waiting::blocked));
            if !begun.delete.is_empty() {
                return self.replace_outdated(begun, waiting, status).await;
            }
            return self.replace_blocking_pod(rollout, waiting, outcome).await;
        }
        // The next sync creates the other pods; updates follow after that.
        if !replicas.is_complete {
            return Ok(waiting.or_else(|| replicas.waiting_for_last_created()));
        }
        // An available pod of the update revision needs no update. The gate counts them for a metric.
        let is_updated = status.updated_replicas == status.replicas;
        let is_settled = is_updated && replicas.first_unavailable.is_none() && flight.is_empty();
        if is_settled && !self.gates.max_unavailable_stateful_set {
            return self.replace_blocking_pod(rollout, waiting, outcome).await;
        }
        let revision = &*status.update_revision;
        let plan = plan(self.set, &replicas.desired, revision, self.gates, self.now)?;
        outcome.unavailable_replicas = plan.unavailable;
        let begun = in_place.begin(flight, plan.delete).await?;
        if begun.delete.is_empty() {
            if let Some(wait) = begun.wait {
                return Ok(waiting.or(Some(wait.into())));
            }
            let down = begun.over_budget.map(Waiting::UpdatedPodUnavailable);
            let blocking = self.replace_blocking_pod(rollout, down.or(plan.waiting), outcome);
            return Ok(waiting.or(blocking.await?));
        }
        let replaced = self.replace_outdated(begun, plan.waiting, status).await?;
        Ok(waiting.or(replaced))
    }

    /// Deletes outdated pods once their gates permit. Returns the reason to wait, else the given one.
    async fn replace_outdated(
        &self,
        begun: Begun,
        waiting: Option<Waiting>,
        status: &mut StatefulSetStatus,
    ) -> Step {
        let removable = self.opted().removable(&begun.delete, self.is_monotonic());
        let removable = removable.await;
        begun.tell(&self.pod_control, &removable.open);
        delete_outdated_pods(&self.pod_control, &removable.open, status).await?;
        let held = removable.held?.or(begun.wait);
        Ok(held.map(Waiting::from).or(waiting))
    }

    /// Replaces the pod that the rollout waits for, or restarts others, if the set opted in to that.
    /// Returns the reason to wait, else the given one.
    async fn replace_blocking_pod(
        &self,
        rollout: Rollout<'_>,
        waiting: Option<Waiting>,
        outcome: &mut SyncOutcome,
    ) -> Step {
        let opted = self.opted();
        let blocked = waiting.as_ref().and_then(Waiting::blocked);
        outcome.requeue_within(opted.replaces_after(rollout, blocked));
        let wait = opted.replace_blocking_pod(rollout, blocked).await?;
        outcome.requeue_within(wait.as_ref().and_then(Wait::retry_after));
        Ok(wait.map(Waiting::from).or(waiting))
    }

    /// Withdraws requests to remove pods that stay.
    async fn withdraw_requests(&self, replicas: &Replicas, revision: &str) -> Result<(), Error> {
        if !self.gates.stateful_set_removal_gate {
            return Ok(());
        }
        let rollout = self.rollout(replicas, revision);
        Ok(self.opted().withdraw_requests(rollout).await?)
    }

    /// Returns what the set opted in to.
    fn opted(&self) -> Opted<'_> {
        Opted {
            opt_ins: self.opt_ins,
            control: &self.pod_control,
            refusals: self.refusals,
            now: self.now,
        }
    }

    /// Returns the rollout of the desired pods.
    fn rollout<'a>(&'a self, replicas: &'a Replicas, update_revision: &'a str) -> Rollout<'a> {
        let has_budget = self.gates.max_unavailable_stateful_set;
        // The plan reports a budget that can't be read.
        let budget = has_budget.then(|| get_stateful_set_max_unavailable(self.set).ok());
        Rollout {
            set: self.set,
            desired: &replicas.desired,
            update_revision,
            max_unavailable: budget.flatten().unwrap_or(1),
            now: self.now,
        }
    }

    /// True if the pods are processed in order, each only if its predecessors are healthy.
    fn is_monotonic(&self) -> bool {
        !self.set.spec.allows_burst()
    }

    /// Processes the replicas, then the claims of condemned pods, then the condemned pods; in the
    /// preview of 1.38 a burst sync processes the condemned pods first, so that a full quota does
    /// not block the scale-down that would relieve it. A monotonic sync stops at the first reason
    /// to wait; a burst sync processes all pods and returns the first reason.
    ///
    /// # Errors
    ///
    /// A pod or a claim can't be read or written. Later pods aren't processed.
    async fn process(&self, replicas: &Replicas) -> Step {
        let (desired, condemned) = (&replicas.desired[..], &replicas.condemned[..]);
        let monotonic = self.is_monotonic();
        let scales_down_first = self.gates.preview_parallel_scale_down_first && !monotonic;
        let mut removed = Ok(None);
        if scales_down_first {
            removed = self.remove_condemned(replicas).await;
            if removed.is_err() {
                return self.end_early(removed, desired, condemned).await;
            }
        }
        let started = AtomicUsize::new(0);
        let process_replica = |slot| {
            started.fetch_add(1, Ordering::Relaxed);
            self.process_replica(slot)
        };
        let processed = run_for_all(desired, monotonic, process_replica).await;
        if processed.is_err() || matches!(processed, Ok(Some(_)) if monotonic) {
            let not_started = desired.get(started.into_inner()..).unwrap_or_default();
            // The claims of condemned pods that were processed first have the policy's owners.
            let condemned = if scales_down_first { &[] } else { condemned };
            return self.end_early(processed, not_started, condemned).await;
        }
        // In a monotonic sync, all replicas are available now. Scaling down precedes the update.
        if !scales_down_first {
            removed = self.remove_condemned(replicas).await;
        }
        Ok(processed?.or(removed?))
    }

    /// Processes the claims of condemned pods, then the condemned pods.
    async fn remove_condemned(&self, replicas: &Replicas) -> Step {
        let monotonic = self.is_monotonic();
        let opted = self.opted();
        let removable = opted.removable_condemned(self.set, &replicas.condemned, monotonic);
        let Removable { open, held } = removable.await;
        // The claims need their owners before the pods are deleted.
        let fix_pod_claim = |slot| self.fix_pod_claim(slot);
        run_for_all(&open, monotonic, fix_pod_claim).await?;
        // In a monotonic sync, one at a time, from the largest ordinal down.
        let first_unavailable = replicas.first_unavailable.as_deref();
        let process_condemned = |slot| self.process_condemned(slot, first_unavailable);
        let removed = run_for_all(&open, monotonic, process_condemned).await?;
        Ok(removed.or(held?.map(Waiting::from)))
    }

    /// Ends a sync that has not processed these pods: releases the claims that the set keeps.
    async fn end_early(&self, processed: Step, desired: &[PodSlot], condemned: &[PodSlot]) -> Step {
        let released = release_kept_claims(self.set, &self.pod_control, desired, condemned).await;
        let waiting = processed?;
        released.map(|()| waiting)
    }

    /// Creates or repairs a desired pod.
    ///
    /// Upstream: `processReplica`.
    async fn process_replica(&self, slot: &PodSlot) -> Step {
        let control = &self.pod_control;
        let Some(pod) = slot.existing() else {
            return self.create_replica(slot).await;
        };
        // A pod that has ended is replaced for any exit code: the phase of an evicted pod depends on
        // its containers, not on the eviction. The replacement has the same name, so it is created
        // after the removal.
        if pod.is_terminal() {
            // An owner from an earlier scale-down must not delete the next pod's volume.
            control.release_claims(slot).await?;
            if !pod.is_terminating() {
                control.delete_stateful_pod(pod).await?;
            }
            return Ok(Some(Waiting::PodRemoval((&pod.name).into())));
        }
        // A pod may be pending because one of its claims was deleted.
        if pod.phase == PodPhase::Pending {
            let created = control.create_missing_persistent_volume_claims(slot).await;
            if let Err(error) = created {
                // Its other claims must outlive it even so.
                let released = control.release_claims(slot).await.err();
                let errors = [error].into_iter().chain(released).map(Error::from);
                Aggregate::join(errors.collect())?;
            }
        }
        // In a monotonic sync, a pod is left unchanged until its predecessors are healthy.
        if self.is_monotonic()
            && let Some(waiting) = self.unhealthy(pod)
        {
            // A pending pod's claims already have the desired owners.
            if pod.phase != PodPhase::Pending {
                control.release_claims(slot).await?;
            }
            return Ok(Some(waiting));
        }
        self.repair(slot).await
    }

    async fn create_replica(&self, slot: &PodSlot) -> Step {
        // The garbage collector would delete a stale claim while the new pod uses it.
        if let Some(claim) = self.pod_control.pod_claim_is_stale(slot)? {
            let (pod, claim) = (slot.name().into(), claim.name.clone());
            return Ok(Some(Waiting::StaleClaim { pod, claim }));
        }
        self.pod_control.create_stateful_pod(slot).await?;
        if self.is_monotonic() {
            return Ok(Some(Waiting::PodCreated(slot.name().into())));
        }
        self.repair(slot).await
    }

    /// Returns the reason for a monotonic sync to wait for this pod, if any: the next pod is created
    /// only after all its predecessors are running, ready and available.
    fn unhealthy(&self, pod: &Pod) -> Option<Waiting> {
        if pod.is_terminating() {
            return Some(Waiting::PodTerminating((&pod.name).into()));
        }
        if !pod.is_running_and_ready() {
            return Some(Waiting::PodNotReady((&pod.name).into()));
        }
        let is_available = pod.is_available(self.set.spec.min_ready_seconds, self.now);
        (!is_available).then(|| Waiting::PodNotAvailable((&pod.name).into()))
    }

    /// Repairs a pod's identity, volumes and claim owners.
    async fn repair(&self, slot: &PodSlot) -> Step {
        // A failed lookup counts as a match, so that it causes no write.
        let retained = self.pod_control.claims_match_retention_policy(slot);
        let matches = slot
            .existing()
            .is_none_or(|pod| identity_matches(self.set, pod) && storage_matches(self.set, pod));
        if !retained.unwrap_or(true) || !matches {
            self.pod_control.update_stateful_pod(slot).await?;
        }
        Ok(None)
    }

    /// Sets the owners of a condemned pod's claims, so that the claims are deleted with the pod if
    /// the policy says so.
    ///
    /// Upstream: `fixPodClaim`.
    async fn fix_pod_claim(&self, slot: &PodSlot) -> Step {
        let control = &self.pod_control;
        if !control.claims_match_retention_policy(slot)? {
            control.update_pod_claim_for_retention_policy(slot).await?;
        }
        Ok(None)
    }

    /// Deletes a condemned pod.
    ///
    /// Upstream: `processCondemned`.
    async fn process_condemned(&self, slot: &PodSlot, first_unavailable: Option<&str>) -> Step {
        let Some(pod) = slot.existing() else {
            return Ok(None);
        };
        let name = Box::<str>::from(&pod.name);
        if pod.is_terminating() {
            // In a monotonic sync, the next pod is deleted after this one is gone.
            let waiting = Waiting::PodTerminating(name);
            return Ok(self.is_monotonic().then_some(waiting));
        }
        // In a monotonic sync, an unhealthy pod is deleted only if it is the first unhealthy one:
        // deleting another one would make two pods unavailable.
        if self.is_monotonic()
            && first_unavailable != Some(&*name)
            && let Some(unhealthy) = self.unhealthy(pod)
        {
            return Ok(Some(match first_unavailable {
                Some(first) => Waiting::ScaleDownBlocked {
                    pod: name,
                    unavailable: first.into(),
                },
                // Every pod is available, but this one isn't running.
                None => unhealthy,
            }));
        }
        self.pod_control.delete_condemned_pod(pod).await?;
        Ok(Some(Waiting::ScaledDown(name)))
    }
}
