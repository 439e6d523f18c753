//! Writes to the pods of a set, with their events.
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
use crate::object_manager::ObjectManager;
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::{
    identity_matches, storage_matches, update_identity, update_storage,
};
use events::Verb;

#[cfg(test)]
mod tests;

/// Creates, repairs and deletes the pods of sets, with the claims behind them.
///
/// Upstream: `StatefulPodControl`.
pub struct StatefulPodControl {
    objects: Arc<dyn ObjectManager>,
    recorder: Arc<dyn EventRecorder>,
    jitter: Arc<dyn Jitter>,
    lower_case_events: bool,
}

impl StatefulPodControl {
    /// Makes a pod control; `jitter` spreads its retries.
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

    /// Begins the messages of events in lower case, as versions before 1.35 wrote them.
    #[must_use]
    pub fn with_lower_case_events(mut self, lower_case: bool) -> Self {
        self.lower_case_events = lower_case;
        self
    }

    /// The control of one set's pods during one sync.
    pub fn for_sync<'a>(&'a self, set: &'a StatefulSet) -> SetPodControl<'a> {
        SetPodControl {
            control: self,
            set,
            live_set: LiveSetCheck::new(),
        }
    }
}

/// The control of one set's pods during one sync. Before a write that could cost a claim, it checks
/// that the live set still is the one that the sync decides on.
pub struct SetPodControl<'a> {
    control: &'a StatefulPodControl,
    set: &'a StatefulSet,
    live_set: LiveSetCheck,
}

impl SetPodControl<'_> {
    /// Creates the missing pod's missing claims, then the pod, then gives the claims their owners.
    /// An existing pod is left alone.
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
        // As upstream, the claims get their owners even if the pod has failed.
        self.update_pod_claim_for_retention_policy(slot)
            .await
            .map_err(|error| self.failed(Verb::Update, &pod.name, error))?;
        self.record_pod_event(Verb::Create, &pod.name, created.as_ref().err());
        if let Some(created) = created? {
            pod.set_created(created);
        }
        Ok(())
    }

    /// Repairs the pod's identity and volumes and its claims' owners. A conflict is retried on a
    /// fresh copy.
    ///
    /// # Errors
    ///
    /// The pod or a claim can't be written; the last conflict of 4 attempts.
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

    /// One attempt to repair a pod.
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

    /// Deletes the pod, if it still has the same uid. A pod that is gone counts as deleted.
    ///
    /// # Errors
    ///
    /// The API server doesn't delete it; a conflict if it is another pod of the name.
    ///
    /// Upstream: `DeleteStatefulPod`.
    pub async fn delete_stateful_pod(&self, pod: &Pod) -> Result<(), Error> {
        let deleted = match self.control.objects.delete_pod(self.set, pod).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
        self.record_pod_event(Verb::Delete, &pod.name, deleted.as_ref().err());
        Ok(deleted?)
    }

    /// Deletes a pod that the set no longer wants. If its claims are deleted with it, the live set
    /// must still say so.
    ///
    /// # Errors
    ///
    /// The set changed or can't be read; or as for [`Self::delete_stateful_pod`].
    pub async fn delete_condemned_pod(&self, pod: &Pod) -> Result<(), Error> {
        let policy = self.set.spec.claim_retention_policy;
        let _turn = if policy.when_scaled == ClaimRetentionPolicyType::Delete {
            let passed = self.live_set.passes(&*self.control.objects, self.set).await;
            Some(passed.map_err(|reason| Error::DeleteWithClaims {
                pod: pod.name.to_string(),
                reason,
            })?)
        } else {
            None
        };
        self.delete_stateful_pod(pod).await
    }

    /// Creates the claims that a pending pod lacks, and gives them their owners.
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

/// The steps that earlier attempts to repair a pod have done.
#[derive(Default)]
struct Progress {
    /// A write of the pod was tried.
    wrote: bool,
    /// The pod's claims were created since the pod was last written, though the cache may not
    /// show them yet.
    claims_created: bool,
}

/// The repairs that a pod needs.
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
        "Operation cannot be fulfilled on pods {name:?}: it is another pod than the one that was seen; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}
