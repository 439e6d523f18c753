//! What is done about each replica and each condemned pod.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::pod::PodPhase;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_pod_control::identity::identity_matches;
use statefulset_pod_control::{LiveSetCheck, NewPod, PodSlot, StatefulPodControl, storage_matches};
use tokio::task::coop::consume_budget;

use crate::error::Error;
use crate::outcome::Waiting;
use crate::run_for_all::{Flow, Mode};

/// What the phases of one sync have in common.
pub(crate) struct Phases<'a> {
    pub(crate) pods: &'a dyn StatefulPodControl,
    /// The set as it is.
    pub(crate) set: &'a StatefulSet,
    /// The set as of the update revision.
    pub(crate) update_set: &'a StatefulSet,
    pub(crate) mode: Mode,
    pub(crate) now: Timestamp,
    pub(crate) live_set: LiveSetCheck,
}

impl Phases<'_> {
    fn is_monotonic(&self) -> bool {
        self.mode == Mode::Monotonic
    }

    /// Brings one wanted pod into being, or repairs it.
    ///
    /// Upstream: `processReplica`.
    pub(crate) async fn process_replica(&self, slot: &PodSlot) -> Result<Flow, Error> {
        match slot {
            PodSlot::Missing(pod) => self.create_replica(slot, pod).await,
            PodSlot::Existing(_, pod) => self.process_existing(slot, pod).await,
        }
    }

    async fn create_replica(&self, slot: &PodSlot, pod: &NewPod) -> Result<Flow, Error> {
        if let Some(claim) = self.pods.stale_claim(self.set, slot)? {
            let (pod, claim) = (pod.name.clone(), claim.into());
            return Ok(Flow::Exit(Waiting::StaleClaim { pod, claim }));
        }
        self.pods
            .create_stateful_pod(self.set, pod, &self.live_set)
            .await?;
        if self.is_monotonic() {
            return Ok(Flow::Exit(Waiting::PodCreated {
                pod: pod.name.clone(),
            }));
        }
        self.repair(slot).await
    }

    async fn process_existing(&self, slot: &PodSlot, pod: &Arc<Pod>) -> Result<Flow, Error> {
        if pod.is_terminal() {
            // A claim that an earlier scale-down gave to the pod is wanted again.
            self.pods.release_claims(self.set, slot).await?;
            if !pod.is_terminating() {
                self.pods.delete_stateful_pod(self.set, pod).await?;
            }
            return Ok(Flow::Exit(Waiting::PodRemoval {
                pod: pod.name.clone(),
            }));
        }
        if pod.phase == PodPhase::Pending {
            self.pods
                .create_missing_persistent_volume_claims(self.set, slot, &self.live_set)
                .await?;
        }
        if self.is_monotonic()
            && let Some(waiting) = self.blocks_successors(pod)
        {
            // The claims of a pending pod have the wanted owners by now.
            if pod.phase != PodPhase::Pending {
                self.pods.release_claims(self.set, slot).await?;
            }
            return Ok(Flow::Exit(waiting));
        }
        self.repair(slot).await
    }

    /// Removes pods from the owners of claims that the set keeps, wherever an earlier scale-down
    /// gave a claim to its pod: whatever the sync waits for, such a claim must not go with the pod.
    /// `waiting` are the wanted pods that the sync doesn't come to. All are tried.
    pub(crate) async fn release_kept_claims(
        &self,
        waiting: &[PodSlot],
        condemned: &[PodSlot],
    ) -> Result<(), Error> {
        let policy = self.set.spec.claim_retention_policy.when_scaled;
        let goes_with_pod = policy == ClaimRetentionPolicyType::Delete;
        let condemned = if goes_with_pod { &[] } else { condemned };
        let mut errors = Vec::new();
        for slot in waiting.iter().chain(condemned) {
            consume_budget().await;
            if slot.existing().is_some()
                && let Err(error) = self.pods.release_claims(self.set, slot).await
            {
                errors.push(error.into());
            }
        }
        Error::join(errors)
    }

    /// Why a pod keeps those after it from being processed, if it does.
    fn blocks_successors(&self, pod: &Pod) -> Option<Waiting> {
        let pod_name = || pod.name.clone();
        if pod.is_terminating() {
            return Some(Waiting::PodTerminating { pod: pod_name() });
        }
        self.unhealthy(pod)
    }

    /// What a pod lacks to be healthy, if anything.
    fn unhealthy(&self, pod: &Pod) -> Option<Waiting> {
        if !pod.is_running_and_ready() {
            return Some(Waiting::PodNotReady {
                pod: pod.name.clone(),
            });
        }
        if !pod.is_available(self.set.spec.min_ready_seconds, self.now) {
            return Some(Waiting::PodNotAvailable {
                pod: pod.name.clone(),
            });
        }
        None
    }

    /// Repairs identity, volumes and claim owners where they are wrong.
    async fn repair(&self, slot: &PodSlot) -> Result<Flow, Error> {
        // A failed look-up counts as a match: it must not lead to a write.
        let retained = self
            .pods
            .claims_match_retention_policy(self.update_set, slot)
            .unwrap_or(true);
        let matches = slot.existing().is_none_or(|pod| {
            identity_matches(self.set, pod) && storage_matches(self.set, slot.ordinal(), pod)
        });
        if !retained || !matches {
            self.pods
                .update_stateful_pod(self.update_set, slot, &self.live_set)
                .await?;
        }
        Ok(Flow::Continue)
    }

    /// Gives a condemned pod's claims their owners, so that they go with the pod where the policy
    /// says so: before the pod is deleted.
    ///
    /// Upstream: `fixPodClaim`.
    pub(crate) async fn fix_claims(&self, slot: &PodSlot) -> Result<Flow, Error> {
        if !self
            .pods
            .claims_match_retention_policy(self.update_set, slot)?
        {
            self.pods
                .update_pod_claim_for_retention_policy(self.update_set, slot, &self.live_set)
                .await?;
        }
        Ok(Flow::Continue)
    }

    /// Removes one pod that is no longer wanted.
    ///
    /// Upstream: `processCondemned`.
    pub(crate) async fn process_condemned(
        &self,
        slot: &PodSlot,
        first_unavailable: Option<&str>,
    ) -> Result<Flow, Error> {
        let Some(pod) = slot.existing() else {
            return Ok(Flow::Continue);
        };
        let pod_name = pod.name.clone();
        if pod.is_terminating() {
            return Ok(match self.mode {
                Mode::Monotonic => Flow::Exit(Waiting::PodTerminating { pod: pod_name }),
                Mode::Burst => Flow::Continue,
            });
        }
        if self.is_monotonic()
            && first_unavailable != Some(&*pod_name)
            && let Some(unhealthy) = self.unhealthy(pod)
        {
            return Ok(Flow::Exit(match first_unavailable {
                Some(first) => Waiting::ScaleDownBlocked {
                    pod: pod_name,
                    unavailable: first.into(),
                },
                // Every pod is available, this one without running.
                None => unhealthy,
            }));
        }
        self.pods
            .delete_condemned_pod(self.set, pod, &self.live_set)
            .await?;
        Ok(Flow::Exit(Waiting::ScaledDown { pod: pod_name }))
    }
}
