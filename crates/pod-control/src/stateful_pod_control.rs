//! Writes to a set's pods and their claims, with their events.
//!
//! Upstream: `stateful_pod_control.go`.

mod claims;
mod events;
mod object_manager;
mod progress;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use statefulset_client::backoff::{DEFAULT_BACKOFF, Jitter, wait};
use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::EventRecorder;
use statefulset_client::rest::retry::Resends;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource::Pods;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::live_set_check::LiveSetCheck;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_controller_util::tracked_client::Timing;
use tokio::sync::Semaphore;

use crate::error::Error;
use crate::stateful_set_utils::{
    ClaimSizes, NewClaim, NewPod, Owner, PodSlot, claim_name, has_unexpected_controller,
    identity_matches, is_policy_unknown, may_keep_owners, ordinal, persistent_volume_claims,
    remove_pod_refs, storage_matches, update_claim_owner_ref_for_set_and_pod, update_identity,
    update_storage,
};

pub use claims::SetClaims;
pub use events::SetEvents;
use events::{CREATE, DELETE, UPDATE};
pub use object_manager::{ObjectManager, RealObjectManager};
use progress::Progress;

#[cfg(test)]
mod tests;

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
            sizes: None,
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
    /// Sizes that new claims have where those of the templates are smaller.
    pub sizes: Option<&'a ClaimSizes>,
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
        self.events()
            .record_pod_event(CREATE, &pod.name, created.as_ref().err());
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
            self.events()
                .record_pod_event(UPDATE, slot.name(), result.as_ref().err());
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
        self.release_claims_before_removal(pod).await?;
        self.delete_stateful_pod(pod).await
    }

    async fn release_claims_before_removal(&self, pod: &Arc<Pod>) -> Result<(), Error> {
        let Some(ordinal) = ordinal(&pod.name) else {
            return Ok(());
        };
        let slot = PodSlot::Existing(ordinal, Arc::clone(pod));
        self.release_unseen_claims(&slot).await
    }

    /// Evicts a pod whose claims outlive it. Returns the server's reason if it refuses, for example
    /// because of a disruption budget, or of two, which it reports as its own failure. A missing pod
    /// counts as evicted.
    ///
    /// # Errors
    ///
    /// A claim can't be read or written, or the API server can't be reached.
    pub async fn evict_pod_keeping_claims(&self, pod: &Arc<Pod>) -> Result<Option<String>, Error> {
        self.release_claims_before_removal(pod).await?;
        match self.control.objects.evict_pod(self.set, pod).await {
            Err(error) if error.is_server_failure() || error.is_forbidden() => {
                Ok(Some(error.to_string()))
            }
            evicted => self.deleted(pod, evicted).map(|()| None),
        }
    }

    /// Reads a pod live; `None` if it no longer exists.
    ///
    /// # Errors
    ///
    /// The API server rejects the request or can't be reached.
    pub async fn read_live(&self, pod: &Pod) -> Result<Option<Live<Pod>>, Error> {
        let live = self.control.objects.read_pod(&pod.namespace, &pod.name);
        match live.await {
            Ok(live) => Ok(Some(live).filter(|live| live.object.uid == pod.uid)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a pod that was read live, unless it has changed since.
    ///
    /// # Errors
    ///
    /// The API server rejects the request or can't be reached.
    pub async fn write_live(&self, pod: Live<Pod>) -> Result<(), Error> {
        Ok(self.control.objects.update_pod(self.set, pod).await?)
    }

    /// Changes the resources of the containers of a pod that was read live, unless it has changed
    /// since. `spec` is a strategic merge patch of its spec.
    ///
    /// # Errors
    ///
    /// The API server rejects the request or can't be reached.
    pub async fn resize_live(&self, pod: &Live<Pod>, spec: Value) -> Result<(), Error> {
        Ok(self.control.objects.resize_pod(self.set, pod, spec).await?)
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
        self.events()
            .record_pod_event(DELETE, &pod.name, deleted.as_ref().err());
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
            let turn = passed.await.map_err(|source| Error::DeletesClaims {
                action: action(),
                source,
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

    /// Creates the pod's claims that the cache lacks. Tries every claim despite errors.
    ///
    /// Upstream: `createPersistentVolumeClaims`.
    async fn create_persistent_volume_claims(&self, slot: &PodSlot) -> Result<(), Error> {
        let mut errors = Vec::new();
        for claim in persistent_volume_claims(self.set, slot.ordinal()) {
            let claim = claim.sized(self.sizes);
            errors.extend(self.create_claim(slot, &claim).await.err());
        }
        Aggregate::join(errors)
    }

    async fn create_claim(&self, slot: &PodSlot, claim: &NewClaim<'_>) -> Result<(), Error> {
        let (set, objects, name) = (self.set, &self.control.objects, &claim.name);
        let (created, action) = match objects.get_claim(set.namespace(), name) {
            Ok(Some(existing)) if existing.deletion_timestamp.is_some() => {
                return Err(Error::ClaimBeingDeleted(name.clone()));
            }
            Ok(Some(_)) => return Ok(()),
            Ok(None) => (objects.create_claim(set, claim).await, "create"),
            Err(error) => (Err(error), "retrieve"),
        };
        if !created.as_ref().is_err_and(ApiError::is_already_exists) {
            self.events()
                .record_claim_event(slot.name(), name, created.as_ref().err());
        }
        created.map_err(|error| Error::claim(error, format!("failed to {action} PVC {name}")))
    }

    /// Returns the pod's cached claims, in the order of their templates. A failed lookup has the
    /// claim's name.
    fn cached_claims<'a>(
        &'a self,
        slot: &'a PodSlot,
    ) -> impl Iterator<Item = Result<Arc<Claim>, (String, ApiError)>> + 'a {
        self.claim_names(slot).filter_map(|name| {
            let cached = self.control.objects.get_claim(self.set.namespace(), &name);
            let failed = |error| (name.into_owned(), error);
            Some(cached.transpose()?.map_err(failed))
        })
    }

    /// Returns the names of the pod's claims, in the order of their templates.
    fn claim_names<'a>(&'a self, slot: &'a PodSlot) -> impl Iterator<Item = Cow<'a, str>> {
        let (ordinal, pod) = (slot.ordinal(), slot.existing().map(Arc::as_ref));
        let templates = self.set.spec.claim_templates.iter();
        templates.map(move |template| claim_name(self.set, template, ordinal, pod))
    }

    /// True if the pod's cached claims have the owners that the retention policy requires. Ignores
    /// missing claims.
    ///
    /// # Errors
    ///
    /// The cache fails to look up a claim.
    ///
    /// Upstream: `ClaimsMatchRetentionPolicy`.
    pub fn claims_match_retention_policy(&self, slot: &PodSlot) -> Result<bool, Error> {
        for claim in self.cached_claims(slot) {
            let claim = claim.map_err(|(claim, error)| {
                let pod = slot.name();
                Error::claim(
                    error,
                    format!("Could not retrieve claim {claim} for {pod} when checking PVC deletion policy"),
                )
            })?;
            if !may_keep_owners(&claim, self.set, slot) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sets the owners of the pod's claims as the retention policy requires.
    ///
    /// # Errors
    ///
    /// Error of the first claim that can't be read or written.
    ///
    /// Upstream: `UpdatePodClaimForRetentionPolicy`.
    pub async fn update_pod_claim_for_retention_policy(&self, slot: &PodSlot) -> Result<(), Error> {
        let set = self.set;
        if is_policy_unknown(set) {
            let policy = set.spec.claim_retention_policy;
            tracing::error!(stateful_set = %set.key(), ?policy, "unknown retention policy, retaining claims");
        }
        for claim in self.cached_claims(slot) {
            let claim = claim
                .map_err(|(claim, error)| Error::claim_lookup_failed(slot.name(), &claim, error))?;
            self.update_owners(slot, &claim).await?;
        }
        Ok(())
    }

    async fn update_owners(&self, slot: &PodSlot, claim: &Claim) -> Result<(), Error> {
        let (set, name) = (self.set, &claim.name);
        if has_unexpected_controller(claim, set, slot) {
            let message = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
            );
            self.events().warn("ConflictingController", &message);
        }
        if may_keep_owners(claim, set, slot) {
            return Ok(());
        }

        let mut live = self.claims().read_same(claim).await?;
        if may_keep_owners(&live.object, set, slot) {
            return Ok(());
        }
        if !update_claim_owner_ref_for_set_and_pod(&mut live, set, slot) {
            return self.claims().write_owners(live).await;
        }
        let action = || format!("add an owner that would cause the deletion of claim {name}");
        let write = || {
            self.control
                .objects
                .update_claim(set, live.clone(), Timing::AtOnce)
        };
        let written = self.write_if_live_set_allows(action, write).await?;
        written.map_err(|error| Error::claim_update_failed(name, error))
    }

    /// Removes the pod from the owners of its claims, so that they outlive it. Changes only the
    /// owners and adds none, so the live set needs no check.
    ///
    /// # Errors
    ///
    /// Error of the first claim that can't be read or written.
    pub async fn release_claims(&self, slot: &PodSlot) -> Result<(), Error> {
        let is_ended = slot.existing().is_some_and(|pod| pod.is_terminal());
        self.release(slot, |is_owner| is_owner || is_ended).await
    }

    /// Completes [`Self::release_claims`] for a pod that is deleted next: the cache may lack an owner
    /// that a user restored, or whose write lost its response.
    async fn release_unseen_claims(&self, slot: &PodSlot) -> Result<(), Error> {
        self.release(slot, |is_owner| !is_owner).await
    }

    /// Removes the pod from the owners of the claims that `reads` selects. Its argument is true if the
    /// cache shows the pod as owner.
    async fn release(&self, slot: &PodSlot, reads: impl Fn(bool) -> bool) -> Result<(), Error> {
        let pod = Owner::pod(slot);
        for name in self.claim_names(slot) {
            let cached = self.control.objects.get_claim(self.set.namespace(), &name);
            let released = match cached {
                Ok(claim) if reads(claim.iter().any(|claim| pod.has_owner_ref(claim))) => {
                    self.release_claim(slot, &name).await
                }
                Ok(_) => Ok(()),
                Err(error) => Err(Error::claim_lookup_failed(slot.name(), &name, error)),
            };
            released.map_err(|error| self.failed(UPDATE, slot.name(), error))?;
        }
        Ok(())
    }

    /// Removes the pod from the owners of a claim, if it is one. A missing claim needs nothing.
    async fn release_claim(&self, slot: &PodSlot, name: &str) -> Result<(), Error> {
        let live = self.control.objects.read_claim(self.set.namespace(), name);
        let mut live = match live.await {
            Err(error) if error.is_not_found() => return Ok(()),
            live => live.map_err(|error| Error::claim_update_failed(name, error))?,
        };
        if Owner::pod(slot).has_owner_ref(&live.object) {
            remove_pod_refs(&mut live, self.set, slot);
            self.claims().write_owners(live).await?;
        }
        Ok(())
    }

    /// Returns the first of the pod's claims that an earlier pod of this name owns and that the
    /// garbage collector will therefore delete. Claims that are retained on scaling are never
    /// stale.
    ///
    /// # Errors
    ///
    /// The cache fails to look up a claim.
    ///
    /// Upstream: `PodClaimIsStale`.
    pub fn pod_claim_is_stale(&self, slot: &PodSlot) -> Result<Option<Arc<Claim>>, Error> {
        let policy = self.set.spec.claim_retention_policy;
        if policy.when_scaled == ClaimRetentionPolicyType::Retain {
            return Ok(None);
        }
        for claim in self.cached_claims(slot) {
            let claim = claim.map_err(|(_, error)| error)?;
            if Owner::pod(slot).has_stale_owner_ref(&claim) {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// Returns the access to the set's claims.
    pub fn claims(&self) -> SetClaims<'_> {
        SetClaims {
            objects: &*self.control.objects,
            set: self.set,
        }
    }

    /// Returns the events about the set.
    pub fn events(&self) -> SetEvents<'_> {
        SetEvents {
            recorder: &*self.control.recorder,
            set: self.set,
            gates: self.control.gates,
        }
    }

    /// Records a failure event and returns the error.
    fn failed(&self, verb: &str, pod: &str, error: Error) -> Error {
        self.events().record_pod_event(verb, pod, Some(&error));
        error
    }
}
