//! A set's pods by slot: wanted replicas and condemned pods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kube_apimachinery::pod::PodPhase;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    ClaimRetentionPolicyType, StatefulSet, UpdateStrategyType,
};
use statefulset_history::apply_revision;
use statefulset_pod_control::stateful_set_utils::{identity_matches, ordinal, storage_matches};
use statefulset_pod_control::{NewPod, Ordinal, PodSlot, SetPodControl};
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::run_for_all::{Step, run_for_all};
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

/// Maximum number of missing pods that one sync of a `Parallel` set creates. Bounds the delay for
/// other sets, and the memory.
const MISSING_PODS_MAX: usize = 500;

/// A set at one of its revisions.
pub(crate) struct SetRevision<'a> {
    set: &'a StatefulSet,
    revision: &'a Arc<ControllerRevision>,
    /// The set with the revision's template. Only the creation of a pod needs it, and it is the
    /// most expensive part of a sync.
    applied: OnceLock<StatefulSet>,
}

impl<'a> SetRevision<'a> {
    /// Checks that the revision can be applied to the set.
    ///
    /// # Errors
    ///
    /// The revision can't be applied.
    pub(crate) fn new(
        set: &'a StatefulSet,
        revision: &'a Arc<ControllerRevision>,
    ) -> Result<Self, Error> {
        let applied = OnceLock::new();
        let it = Self {
            set,
            revision,
            applied,
        };
        if !set.spec.template.memo().is_applicable(revision) {
            it.applied()?;
        }
        Ok(it)
    }

    fn applied(&self) -> Result<&StatefulSet, Error> {
        if let Some(applied) = self.applied.get() {
            return Ok(applied);
        }
        let applied = apply_revision(self.set, self.revision)?;
        Ok(self.applied.get_or_init(|| applied))
    }
}

/// A set's pods by slot.
pub(crate) struct Replicas {
    /// One slot per wanted pod, by index, without the missing pods that this sync doesn't create.
    pub(crate) wanted: Vec<PodSlot>,
    /// True if every wanted pod has a slot.
    pub(crate) is_complete: bool,
    /// Condemned pods, by descending ordinal.
    pub(crate) condemned: Vec<PodSlot>,
    /// Name of the first unavailable pod: wanted pods by ascending ordinal, then condemned ones by
    /// ascending ordinal. A missing pod is unavailable.
    pub(crate) first_unavailable: Option<Box<str>>,
}

impl Replicas {
    /// Splits the pods. A pod without an ordinal gets no slot. A wanted pod without a phase, which
    /// no API server stores, counts as missing.
    ///
    /// # Errors
    ///
    /// A revision can't be applied to the set.
    pub(crate) fn new(
        set: &StatefulSet,
        current: &SetRevision<'_>,
        update: &SetRevision<'_>,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (mut wanted, mut condemned) = (Vec::with_capacity(pods.len()), Vec::new());
        // Of wanted pods with the same ordinal the last one counts.
        for pod in pods.iter().rev() {
            match ordinal(&pod.name) {
                Some(ordinal) if ordinal.index_in(set).is_some() => {
                    wanted.push(PodSlot::Existing(ordinal, Arc::clone(pod)));
                }
                Some(ordinal) => condemned.push(PodSlot::Existing(ordinal, Arc::clone(pod))),
                None => {}
            }
        }
        wanted.sort_by_key(PodSlot::ordinal);
        wanted.dedup_by_key(|slot| slot.ordinal());
        wanted.retain(|slot| slot.existing().is_some_and(|pod| pod.is_created()));
        condemned.sort_by_key(PodSlot::ordinal);
        condemned.reverse();

        // A set may want billions of pods, and a monotonic sync stops at the first missing one.
        let missing_max = if set.spec.allows_burst() {
            MISSING_PODS_MAX
        } else {
            1
        };
        let replica_count = usize::try_from(set.spec.replicas).unwrap_or(0);
        let mut existing = wanted.iter().map(PodSlot::ordinal).peekable();
        let missing: Vec<PodSlot> = (0..replica_count)
            .map(|index| Ordinal::of_index(set, index))
            .filter(|ordinal| existing.next_if_eq(ordinal).is_none())
            .take(missing_max.min(replica_count.saturating_sub(wanted.len())))
            .map(|ordinal| new_versioned_stateful_set_pod(set, current, update, ordinal))
            .collect::<Result<_, _>>()?;
        wanted.extend(missing);
        wanted.sort_by_key(PodSlot::ordinal);
        let first_unavailable = wanted
            .iter()
            .chain(condemned.iter().rev())
            .find(|slot| slot.is_unavailable(set.spec.min_ready_seconds, now))
            .map(|slot| slot.name().into());
        Ok(Self {
            is_complete: wanted.len() == replica_count,
            wanted,
            condemned,
            first_unavailable,
        })
    }

    /// Returns the reason to wait after this sync created its last missing pod.
    pub(crate) fn waiting_for_last_created(&self) -> Option<Waiting> {
        let created = self.wanted.iter().rfind(|slot| slot.existing().is_none());
        created.map(|slot| Waiting::PodCreated(slot.name().into()))
    }

    /// Returns the pods that existed at the start of the sync, wanted ones first.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        let slots = self.wanted.iter().chain(&self.condemned);
        slots.filter_map(|slot| slot.existing().map(|pod| &**pod))
    }
}

/// Returns the pod for an empty slot: of the current revision if the update hasn't reached its
/// ordinal, otherwise of the update revision.
///
/// Upstream: `newVersionedStatefulSetPod`.
fn new_versioned_stateful_set_pod(
    set: &StatefulSet,
    current: &SetRevision<'_>,
    update: &SetRevision<'_>,
    ordinal: Ordinal,
) -> Result<PodSlot, Error> {
    let strategy = &current.applied()?.spec.update_strategy;
    let is_current = match &strategy.rolling_update {
        None => {
            strategy.strategy_type == UpdateStrategyType::RollingUpdate
                && ordinal.is_below(set, set.status.current_replicas)
        }
        Some(rolling_update) => ordinal.is_below(set, rolling_update.partition),
    };
    let set_revision = if is_current { current } else { update };
    let name = &set_revision.revision.name;
    let mut pod = NewPod::new(set_revision.applied()?, name, ordinal);
    pod.is_outdated = *name != update.revision.name;
    Ok(PodSlot::Missing(pod))
}

/// One sync of a set: creates, repairs and deletes its pods.
pub(crate) struct SetSync<'a> {
    pub(crate) set: &'a StatefulSet,
    pub(crate) pod_control: SetPodControl<'a>,
    pub(crate) gates: FeatureGates,
    pub(crate) now: Timestamp,
}

impl SetSync<'_> {
    /// True if the pods are processed in order, each only if its predecessors are healthy.
    pub(crate) fn is_monotonic(&self) -> bool {
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
    pub(crate) async fn process(&self, replicas: &Replicas) -> Step {
        let (wanted, condemned) = (&replicas.wanted[..], &replicas.condemned[..]);
        let monotonic = self.is_monotonic();
        let scales_down_first = self.gates.preview_parallel_scale_down_first && !monotonic;
        let mut removed = Ok(None);
        if scales_down_first {
            removed = self.remove_condemned(replicas).await;
            if removed.is_err() {
                return self.end_early(removed, wanted, condemned).await;
            }
        }
        let started = AtomicUsize::new(0);
        let process_replica = |slot| {
            started.fetch_add(1, Ordering::Relaxed);
            self.process_replica(slot)
        };
        let processed = run_for_all(wanted, monotonic, process_replica).await;
        if processed.is_err() || matches!(processed, Ok(Some(_)) if monotonic) {
            let not_started = wanted.get(started.into_inner()..).unwrap_or_default();
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
        // The claims need their owners before the pods are deleted.
        let fix_pod_claim = |slot| self.fix_pod_claim(slot);
        run_for_all(&replicas.condemned, monotonic, fix_pod_claim).await?;
        // In a monotonic sync, one at a time, from the largest ordinal down.
        let first_unavailable = replicas.first_unavailable.as_deref();
        let process_condemned = |slot| self.process_condemned(slot, first_unavailable);
        run_for_all(&replicas.condemned, monotonic, process_condemned).await
    }

    /// Ends a sync that has not processed these pods: releases the claims that the set keeps.
    async fn end_early(&self, processed: Step, wanted: &[PodSlot], condemned: &[PodSlot]) -> Step {
        let released = self.release_kept_claims(wanted, condemned).await;
        let waiting = processed?;
        released.map(|()| waiting)
    }

    /// Removes pods from the owners of claims that the set keeps. An earlier scale-down may have
    /// added them, and such a claim must outlive its pod even if the sync stops early. `wanted`
    /// holds the wanted pods that the sync has not processed. Tries every pod despite errors.
    pub(crate) async fn release_kept_claims(
        &self,
        wanted: &[PodSlot],
        condemned: &[PodSlot],
    ) -> Result<(), Error> {
        let policy = self.set.spec.claim_retention_policy.when_scaled;
        let goes_with_pod = policy == ClaimRetentionPolicyType::Delete;
        let condemned = if goes_with_pod { &[] } else { condemned };
        let existing = |slot: &&PodSlot| slot.existing().is_some();
        let mut errors = Vec::new();
        for slot in wanted.iter().chain(condemned).filter(existing) {
            consume_budget().await;
            let released = self.pod_control.release_claims(slot).await;
            errors.extend(released.err().map(Error::from));
        }
        Aggregate::join(errors)
    }

    /// Creates or repairs a wanted pod.
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
            control
                .create_missing_persistent_volume_claims(slot)
                .await?;
        }
        // In a monotonic sync, a pod is left unchanged until its predecessors are healthy.
        if self.is_monotonic()
            && let Some(waiting) = self.unhealthy(pod)
        {
            // A pending pod's claims already have the wanted owners.
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
