//! Writes to a set's pods, with their events.
//!
//! Upstream: `stateful_pod_control.go`.

mod claims;
mod object_manager;

use std::fmt::Display;
use std::sync::Arc;

use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter, wait};
use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::{EventRecorder, EventType};
use statefulset_client::rest::retry::Resends;
use statefulset_controller_util::consistency::TrackedResource::Pods;
use statefulset_controller_util::live_set_check::LiveSetCheck;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_controller_util::tracked_client::Timing;
use tokio::sync::Semaphore;

use crate::error::Error;
use crate::stateful_set_utils::{
    NewPod, PodSlot, identity_matches, ordinal, storage_matches, update_identity, update_storage,
};

pub use object_manager::{ObjectManager, RealObjectManager};

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
    gates: FeatureGates,
}

impl StatefulPodControl {
    /// Creates a pod control; `jitter` spreads its retries.
    ///
    /// Upstream: `NewStatefulPodControlFromManager`.
    pub fn new(
        objects: Arc<dyn ObjectManager>,
        recorder: Arc<dyn EventRecorder>,
        jitter: Arc<dyn Jitter>,
        gates: FeatureGates,
    ) -> Self {
        Self {
            objects,
            recorder,
            jitter,
            gates,
        }
    }

    /// Returns the control of one set's pods during one sync.
    pub fn for_sync<'a>(&'a self, set: &'a StatefulSet) -> SetPodControl<'a> {
        SetPodControl {
            control: self,
            set,
            live_set: LiveSetCheck::default(),
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
            // A sync creates each pod once.
            let _ = pod.created.set(created);
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
                Err(error) if error.is_conflict() && wait(&mut delays).await => {}
                result => break result,
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
        let matches = |pod: &Pod| [identity_matches(set, pod), storage_matches(set, pod)];

        let cached = slot.existing();
        let [has_identity, has_storage] = cached.map_or([true; 2], |pod| matches(pod));
        if !has_storage && !progress.claims_created {
            let created = self.create_persistent_volume_claims(slot).await;
            created.map_err(failed)?;
            progress.claims_created = true;
        }
        let claims_match = self.claims_match_retention_policy(slot).map_err(failed)?;
        if !claims_match {
            let updated = self.update_pod_claim_for_retention_policy(slot).await;
            updated.map_err(failed)?;
        }
        if claims_match && has_identity && has_storage {
            return Ok(());
        }

        let live = self.control.objects.read_pod(set.namespace(), name).await;
        let live = live.and_then(|live| live.with_uid(slot.uid(), Pods, "pod"));
        let mut live = live.inspect_err(|_| progress.wrote = true)?;
        let [has_identity, has_storage] = matches(&live.object);
        // As in upstream, a pod whose claims alone were wrong is written as well.
        if claims_match && has_identity && has_storage {
            return Ok(());
        }
        if !has_identity {
            update_identity(&mut live.json, set, name, ordinal);
        }
        if !has_storage {
            update_storage(set, ordinal, &mut live.json);
        }
        progress.wrote = true;
        progress.claims_created = false;
        Ok(self.control.objects.update_pod(set, live).await?)
    }

    /// Deletes a pod whose claims outlive it.
    ///
    /// # Errors
    ///
    /// A claim can't be read or written; or an error of [`Self::delete_stateful_pod`].
    pub async fn delete_pod_keeping_claims(&self, pod: &Arc<Pod>) -> Result<(), Error> {
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
        let deleted = self
            .control
            .objects
            .delete_pod(self.set, pod, Timing::Queued);
        self.deleted(pod, deleted.await)
    }

    /// Records the result of a deletion.
    fn deleted(&self, pod: &Pod, deleted: Result<(), ApiError>) -> Result<(), Error> {
        let deleted = match deleted {
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
    /// The set changed or can't be read; or an error of [`Self::delete_pod_keeping_claims`].
    pub async fn delete_condemned_pod(&self, pod: &Arc<Pod>) -> Result<(), Error> {
        let spec = &self.set.spec;
        let deletes = spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete;
        if !deletes || spec.claim_templates.is_empty() {
            return self.delete_pod_keeping_claims(pod).await;
        }
        let action = || format!("delete pod {} and its claims", pod.name);
        let delete = || {
            self.control
                .objects
                .delete_pod(self.set, pod, Timing::AtOnce)
        };
        let deleted = self.write_if_live_set_allows(action, delete).await?;
        self.deleted(pod, deleted)
    }

    /// Checks the live set, then makes a write after which claims would be deleted. Repeats both if the
    /// server has not executed the write. Returns the result of the write.
    async fn write_if_live_set_allows<F>(
        &self,
        action: impl Fn() -> String,
        write: impl Fn() -> F,
    ) -> Result<Result<(), ApiError>, Error>
    where
        F: Future<Output = Result<(), ApiError>>,
    {
        let mut resends = Resends::default();
        loop {
            let passed = self.live_set.passes(&*self.control.objects, self.set);
            let turn = passed.await.map_err(|reason| Error::DeletesClaims {
                action: action(),
                reason,
            })?;
            // No step may come between the check and the write.
            let written = write().await;
            drop(turn);
            if !resends.allows(&written).await {
                return Ok(written);
            }
        }
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
    fn record_pod_event(&self, verb: &str, pod: &str, error: Option<&impl Display>) {
        self.record(verb, &format!("Pod {pod}"), "successful", error);
    }

    /// Upstream: `recordClaimEvent`.
    fn record_claim_event(&self, pod: &str, claim: &str, error: Option<&ApiError>) {
        // As in upstream, only the text of a failure has this word.
        let link = error.map_or("", |_| " for");
        let subject = format!("Claim {claim}{link} Pod {pod}");
        self.record(CREATE, &subject, "success", error);
    }

    fn record(&self, verb: &str, subject: &str, success: &str, error: Option<&impl Display>) {
        let set = self.set.name();
        let mut start = verb.to_owned();
        if self.control.gates.events_begin_in_lower_case() {
            start.make_ascii_lowercase();
        }
        let message = format!("{start} {subject} in StatefulSet {set}");
        if let Some(error) = error {
            let message = format!("{message} failed error: {error}");
            self.warn(&format!("Failed{verb}"), &message);
        } else {
            let reason = format!("Successful{verb}");
            self.event(EventType::Normal, &reason, &format!("{message} {success}"));
        }
    }

    /// Records a warning about the set.
    pub fn warn(&self, reason: &str, message: &str) {
        self.event(EventType::Warning, reason, message);
    }

    fn event(&self, event_type: EventType, reason: &str, message: &str) {
        let (set, recorder) = (self.set.object_reference(), &self.control.recorder);
        recorder.event(&set, event_type, reason, message);
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
