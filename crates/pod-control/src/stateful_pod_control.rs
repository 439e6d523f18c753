//! Writes to a set's pods, with their events.
//!
//! Upstream: `stateful_pod_control.go`.

mod claims;
mod events;

use std::sync::Arc;

use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter};
use statefulset_client::error::Error as ApiError;
use statefulset_client::recorder::EventRecorder;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};

use crate::error::Error;
use crate::live_set_check::LiveSetCheck;
use crate::object_manager::{ObjectManager, Timing};
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::{
    identity_matches, storage_matches, update_identity, update_storage,
};
use events::Verb;

#[cfg(test)]
mod tests;

/// Creates, repairs and deletes the pods of sets and their claims.
///
/// Upstream: `StatefulPodControl`.
pub struct StatefulPodControl {
    objects: Arc<dyn ObjectManager>,
    recorder: Arc<dyn EventRecorder>,
    jitter: Arc<dyn Jitter>,
    lower_case_events: bool,
}

impl StatefulPodControl {
    /// Creates a pod control; `jitter` spreads its retries.
    ///
    /// Upstream: `NewStatefulPodControlFromManager`.
    pub fn new(
        objects: Arc<dyn ObjectManager>,
        recorder: Arc<dyn EventRecorder>,
        jitter: Arc<dyn Jitter>,
    ) -> Self {
        Self {
            objects,
            recorder,
            jitter,
            lower_case_events: false,
        }
    }

    /// Starts the messages of events in lower case, like versions before 1.35.
    #[must_use]
    pub fn with_lower_case_events(mut self, lower_case: bool) -> Self {
        self.lower_case_events = lower_case;
        self
    }

    /// Returns the control of one set's pods during one sync.
    pub fn for_sync<'a>(&'a self, set: &'a StatefulSet) -> SetPodControl<'a> {
        SetPodControl {
            control: self,
            set,
            live_set: LiveSetCheck::new(),
        }
    }
}

/// Control of one set's pods during one sync. Before a write that can delete a claim, it checks
/// that the live set still matches the sync's set.
pub struct SetPodControl<'a> {
    control: &'a StatefulPodControl,
    set: &'a StatefulSet,
    live_set: LiveSetCheck,
}

impl SetPodControl<'_> {
    /// Creates the missing claims, then the missing pod, then sets the claims' owners. Leaves an
    /// existing pod unchanged.
    ///
    /// # Errors
    ///
    /// A claim or the pod can't be created, or a claim's owners can't be written.
    ///
    /// Upstream: `CreateStatefulPod`.
    pub async fn create_stateful_pod(&self, slot: &PodSlot) -> Result<(), Error> {
        let PodSlot::Missing(pod) = slot else {
            return Ok(());
        };
        if pod.ordinal.is_past_largest() {
            let ordinal = pod.ordinal;
            let error = Error::OrdinalPastLargest { ordinal };
            return Err(self.failed(Verb::Create, &pod.name, error));
        }
        self.create_persistent_volume_claims(slot)
            .await
            .map_err(|error| self.failed(Verb::Create, &pod.name, error))?;
        let created = self.control.objects.create_pod(self.set, pod).await;
        if created.as_ref().is_err_and(ApiError::is_already_exists) {
            return Ok(created.map(drop)?);
        }
        // As upstream, the claims get their owners even if the pod's creation failed.
        self.update_pod_claim_for_retention_policy(slot)
            .await
            .map_err(|error| self.failed(Verb::Update, &pod.name, error))?;
        self.record_pod_event(Verb::Create, &pod.name, created.as_ref().err());
        if let Some(created) = created? {
            pod.set_created(created);
        }
        Ok(())
    }

    /// Repairs the pod's identity and volumes and its claims' owners. Retries a conflict on a fresh
    /// copy.
    ///
    /// # Errors
    ///
    /// The pod or a claim can't be written; the last conflict after 4 attempts.
    ///
    /// Upstream: `UpdateStatefulPod`.
    pub async fn update_stateful_pod(&self, slot: &PodSlot) -> Result<(), Error> {
        let mut progress = Progress::default();
        let mut delays = DEFAULT_BACKOFF.delays(&*self.control.jitter);
        let result = loop {
            match self.try_update(slot, &mut progress).await {
                Err(error) if error.is_conflict() => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => break Err(error),
                },
                other => break other,
            }
        };
        if progress.wrote {
            self.record_pod_event(Verb::Update, slot.name(), result.as_ref().err());
        }
        result
    }

    /// Tries once to repair a pod.
    async fn try_update(&self, slot: &PodSlot, progress: &mut Progress) -> Result<(), Error> {
        let set = self.set;
        let failed = |error| self.failed(Verb::Update, slot.name(), error);
        let cached = slot
            .existing()
            .map(|pod| Repair::of(set, slot, pod))
            .unwrap_or_default();
        if cached.storage && !progress.claims_created {
            self.create_persistent_volume_claims(slot)
                .await
                .map_err(failed)?;
            progress.claims_created = true;
        }
        let claims_match = self.claims_match_retention_policy(slot).map_err(failed)?;
        if !claims_match {
            self.update_pod_claim_for_retention_policy(slot)
                .await
                .map_err(failed)?;
        }
        if claims_match && !cached.is_due() {
            return Ok(());
        }

        let objects = &self.control.objects;
        let live = objects.read_pod(slot.namespace(), slot.name()).await;
        let mut live = live.inspect_err(|_| progress.wrote = true)?;
        if *live.object.uid != *slot.uid() {
            progress.wrote = true;
            return Err(another_pod(slot.name()).into());
        }
        let repair = Repair::of(set, slot, &live.object);
        if claims_match && !repair.is_due() {
            return Ok(());
        }
        repair.apply(set, slot, &mut live);
        *progress = Progress {
            wrote: true,
            claims_created: false,
        };
        Ok(objects.update_pod(set, live).await?)
    }

    /// Deletes the pod if its uid is unchanged. A missing pod counts as deleted.
    ///
    /// # Errors
    ///
    /// The API server rejects the deletion or can't be reached; a conflict if the pod was
    /// recreated.
    ///
    /// Upstream: `DeleteStatefulPod`.
    pub async fn delete_stateful_pod(&self, pod: &Pod) -> Result<(), Error> {
        self.delete_pod(pod, Timing::Queued).await
    }

    async fn delete_pod(&self, pod: &Pod, timing: Timing) -> Result<(), Error> {
        let deleted = self.control.objects.delete_pod(self.set, pod, timing).await;
        let deleted = match deleted {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
        self.record_pod_event(Verb::Delete, &pod.name, deleted.as_ref().err());
        Ok(deleted?)
    }

    /// Deletes a condemned pod. If its claims are deleted with it, the live set must still allow
    /// that.
    ///
    /// # Errors
    ///
    /// The set changed or can't be read; or an error of [`Self::delete_stateful_pod`].
    pub async fn delete_condemned_pod(&self, pod: &Pod) -> Result<(), Error> {
        let policy = self.set.spec.claim_retention_policy;
        if policy.when_scaled != ClaimRetentionPolicyType::Delete {
            return self.delete_stateful_pod(pod).await;
        }
        // No step may come between this check and the deletion.
        let passed = self.live_set.passes(&*self.control.objects, self.set).await;
        let _turn = passed.map_err(|reason| Error::DeleteWithClaims {
            pod: pod.name.to_string(),
            reason,
        })?;
        self.delete_pod(pod, Timing::AtOnce).await
    }

    /// Creates a pending pod's missing claims and sets their owners.
    ///
    /// # Errors
    ///
    /// A claim can't be created or written.
    ///
    /// Upstream: `createMissingPersistentVolumeClaims`.
    pub async fn create_missing_persistent_volume_claims(
        &self,
        slot: &PodSlot,
    ) -> Result<(), Error> {
        self.create_persistent_volume_claims(slot).await?;
        self.update_pod_claim_for_retention_policy(slot)
            .await
            .map_err(|error| self.failed(Verb::Update, slot.name(), error))
    }
}

/// Steps that earlier attempts to repair a pod have completed.
#[derive(Default)]
struct Progress {
    /// A write of the pod was attempted.
    wrote: bool,
    /// The pod's claims were created after its last write, though the cache may not show them yet.
    claims_created: bool,
}

/// Repairs that a pod needs.
#[derive(Clone, Copy, Default)]
struct Repair {
    identity: bool,
    storage: bool,
}

impl Repair {
    fn of(set: &StatefulSet, slot: &PodSlot, pod: &Pod) -> Self {
        Self {
            identity: !identity_matches(set, pod),
            storage: !storage_matches(set, slot.ordinal(), pod),
        }
    }

    fn is_due(self) -> bool {
        self.identity || self.storage
    }

    fn apply(self, set: &StatefulSet, slot: &PodSlot, live: &mut Live<Pod>) {
        if self.identity {
            update_identity(&mut live.json, set, slot.name(), slot.ordinal());
        }
        if self.storage {
            update_storage(set, slot.ordinal(), &mut live.json);
        }
    }
}

fn another_pod(name: &str) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on pods {name:?}: the pod was recreated; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}
