//! Writes to a set's pods, with their events.
//!
//! Upstream: `stateful_pod_control.go`.

mod claims;
mod object_manager;

use std::fmt::Display;
use std::sync::Arc;

use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter};
use statefulset_client::error::Error as ApiError;
use statefulset_client::recorder::{EventRecorder, EventType};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::Error;
use crate::live_set_check::LiveSetCheck;
use crate::stateful_set_utils::{
    NewPod, PodSlot, identity_matches, ordinal, storage_matches, update_identity, update_storage,
};

pub use object_manager::{ObjectManager, RealObjectManager, Timing};

#[cfg(test)]
mod tests;

/// Actions that events report.
const CREATE: &str = "Create";
const UPDATE: &str = "Update";
const DELETE: &str = "Delete";

/// Minimum size of a large pod template.
const LARGE_TEMPLATE_BYTES: usize = 64 * 1024;
/// Pods of a set with a large template that are built and sent at a time. A batch has up to 500
/// pods, and each may take megabytes.
const LARGE_PODS_MAX: usize = 4;

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
            large_pods: Semaphore::new(LARGE_PODS_MAX),
        }
    }
}

/// Control of one set's pods during one sync.
///
/// # Guarantees
///
/// Before a write after which claims would be deleted, it has read the set live: the set is the
/// sync's, has the same generation, and isn't being deleted.
pub struct SetPodControl<'a> {
    control: &'a StatefulPodControl,
    set: &'a StatefulSet,
    live_set: LiveSetCheck,
    /// Turns for pods with large templates.
    large_pods: Semaphore,
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
            let error = Error::OrdinalPastLargest(pod.ordinal);
            return Err(self.failed(CREATE, &pod.name, error));
        }
        // The pod's volumes need the claims.
        let claims = self.create_persistent_volume_claims(slot).await;
        claims.map_err(|error| self.failed(CREATE, &pod.name, error))?;
        let created = self.create_pod(pod).await;
        if created.as_ref().is_err_and(ApiError::is_already_exists) {
            return Ok(created.map(drop)?);
        }
        // As in upstream, the claims get their owners even if the pod's creation failed.
        let owned = self.update_pod_claim_for_retention_policy(slot).await;
        owned.map_err(|error| self.failed(UPDATE, &pod.name, error))?;
        self.record_pod_event(CREATE, &pod.name, created.as_ref().err());
        if let Some(created) = created? {
            pod.set_created(created);
        }
        Ok(())
    }

    async fn create_pod(&self, pod: &NewPod) -> Result<Option<Arc<Pod>>, ApiError> {
        let mut _turn = None;
        if pod.template_bytes() >= LARGE_TEMPLATE_BYTES {
            _turn = self.large_pods.acquire().await.ok();
            // Building the last pod took a while, so other sets run first.
            tokio::task::yield_now().await;
        }
        self.control.objects.create_pod(self.set, pod).await
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
            self.record_pod_event(UPDATE, slot.name(), result.as_ref().err());
        }
        result
    }

    /// Tries once to repair a pod.
    async fn try_update(&self, slot: &PodSlot, progress: &mut Progress) -> Result<(), Error> {
        let (set, ordinal, name) = (self.set, slot.ordinal(), slot.name());
        let failed = |error| self.failed(UPDATE, name, error);
        let is_identity_right = |pod: &Pod| identity_matches(set, pod);
        let has_storage = |pod: &Pod| storage_matches(set, pod);

        let cached = slot.existing().map(|pod| &**pod);
        if !cached.is_none_or(has_storage) && !progress.claims_created {
            self.create_persistent_volume_claims(slot)
                .await
                .map_err(failed)?;
            progress.claims_created = true;
        }
        let claims_match = self.claims_match_retention_policy(slot).map_err(failed)?;
        if !claims_match {
            let updated = self.update_pod_claim_for_retention_policy(slot).await;
            updated.map_err(failed)?;
        }
        if claims_match && cached.is_none_or(|pod| is_identity_right(pod) && has_storage(pod)) {
            return Ok(());
        }

        let live = self.control.objects.read_pod(slot.namespace(), name).await;
        let mut live = live.inspect_err(|_| progress.wrote = true)?;
        if *live.object.uid != *slot.uid() {
            progress.wrote = true;
            return Err(recreated("pods", "pod", name).into());
        }
        let (is_identity_right, has_storage) =
            (is_identity_right(&live.object), has_storage(&live.object));
        // As in upstream, a pod whose claims alone were wrong is written as well.
        if claims_match && is_identity_right && has_storage {
            return Ok(());
        }
        if !is_identity_right {
            update_identity(&mut live.json, set, name, ordinal);
        }
        if !has_storage {
            update_storage(set, ordinal, &mut live.json);
        }
        *progress = Progress {
            wrote: true,
            claims_created: false,
        };
        Ok(self.control.objects.update_pod(set, live).await?)
    }

    /// Deletes a wanted pod, for its replacement. Its claims outlive it.
    ///
    /// # Errors
    ///
    /// A claim can't be read or written; or an error of [`Self::delete_stateful_pod`].
    pub async fn delete_wanted_pod(&self, pod: &Arc<Pod>) -> Result<(), Error> {
        if let Some(ordinal) = ordinal(&pod.name) {
            let slot = PodSlot::Existing(ordinal, Arc::clone(pod));
            self.release_unseen_claims(&slot).await?;
        }
        self.delete_stateful_pod(pod).await
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
        let deleted = self.control.objects.delete_pod(self.set, pod, timing);
        let deleted = match deleted.await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
        self.record_pod_event(DELETE, &pod.name, deleted.as_ref().err());
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
        let name = &pod.name;
        let action = || format!("delete pod {name}, with which its claims would be deleted");
        // No step may come between this check and the deletion.
        let _turn = self.live_set_allows(action).await?;
        self.delete_pod(pod, Timing::AtOnce).await
    }

    /// Checks the live set before a write after which claims would be deleted. The permit is held
    /// during the write.
    async fn live_set_allows(
        &self,
        action: impl FnOnce() -> String,
    ) -> Result<SemaphorePermit<'_>, Error> {
        let passed = self.live_set.passes(&*self.control.objects, self.set).await;
        passed.map_err(|reason| Error::DeletesClaims {
            action: action(),
            reason,
        })
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
        let owned = self.update_pod_claim_for_retention_policy(slot).await;
        owned.map_err(|error| self.failed(UPDATE, slot.name(), error))
    }

    /// Upstream: `recordPodEvent`.
    fn record_pod_event(&self, verb: &str, pod: &str, error: Option<&(impl Display + ?Sized)>) {
        let set = self.set.name();
        let message = match error {
            None => format!("Pod {pod} in StatefulSet {set} successful"),
            Some(error) => format!("Pod {pod} in StatefulSet {set} failed error: {error}"),
        };
        self.record(verb, error.is_some(), &message);
    }

    /// Upstream: `recordClaimEvent`.
    fn record_claim_event(&self, pod: &str, claim: &str, error: Option<&ApiError>) {
        let set = self.set.name();
        let message = match error {
            None => format!("Claim {claim} Pod {pod} in StatefulSet {set} success"),
            Some(error) => {
                format!("Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}")
            }
        };
        self.record(CREATE, error.is_some(), &message);
    }

    fn record(&self, verb: &str, failed: bool, message: &str) {
        let message = if self.control.lower_case_events {
            format!("{} {message}", verb.to_lowercase())
        } else {
            format!("{verb} {message}")
        };
        if failed {
            self.warn(&format!("Failed{verb}"), &message);
        } else {
            self.event(EventType::Normal, &format!("Successful{verb}"), &message);
        }
    }

    /// Records a warning about the set.
    pub fn warn(&self, reason: &str, message: &str) {
        self.event(EventType::Warning, reason, message);
    }

    fn event(&self, event_type: EventType, reason: &str, message: &str) {
        let set = self.set.object_reference();
        self.control
            .recorder
            .event(&set, event_type, reason, message);
    }

    /// Records a failure event and returns the error.
    fn failed(&self, verb: &str, pod: &str, error: Error) -> Error {
        self.record_pod_event(verb, pod, Some(&error));
        error
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

/// Returns the conflict of a write for an object that was replaced by another of its name.
fn recreated(resource: &str, kind: &str, name: &str) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on {resource} {name:?}: the {kind} was recreated; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}
