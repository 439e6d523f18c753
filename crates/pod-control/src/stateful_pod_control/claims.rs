//! Creation of a pod's claims, and updates of their owners.

use std::borrow::Cow;
use std::sync::Arc;

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource::PersistentVolumeClaims;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::ClaimRetentionPolicyType;
use statefulset_controller_util::tracked_client::Timing;

use super::{SetPodControl, UPDATE};
use crate::error::Error;
use crate::stateful_set_utils::{
    NewClaim, Owner, PodSlot, claim_name, has_unexpected_controller, is_policy_unknown,
    may_keep_owners, persistent_volume_claims, remove_pod_refs,
    update_claim_owner_ref_for_set_and_pod,
};

impl SetPodControl<'_> {
    /// Creates the pod's claims that the cache lacks. Tries every claim despite errors.
    ///
    /// Upstream: `createPersistentVolumeClaims`.
    pub(super) async fn create_persistent_volume_claims(
        &self,
        slot: &PodSlot,
    ) -> Result<(), Error> {
        let mut errors = Vec::new();
        for claim in persistent_volume_claims(self.set, slot.ordinal()) {
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
            self.record_claim_event(slot.name(), name, created.as_ref().err());
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
            let claim = claim.map_err(|failed| lookup_failed(slot, failed))?;
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
            self.warn("ConflictingController", &message);
        }
        if may_keep_owners(claim, set, slot) {
            return Ok(());
        }

        let mut live = self.read_same_claim(claim).await?;
        if may_keep_owners(&live.object, set, slot) {
            return Ok(());
        }
        if !update_claim_owner_ref_for_set_and_pod(&mut live, set, slot) {
            return self.write_claim(live).await;
        }
        let action = || format!("add an owner that would cause the deletion of claim {name}");
        let write = || {
            self.control
                .objects
                .update_claim(set, live.clone(), Timing::AtOnce)
        };
        let written = self.write_if_live_set_allows(action, write).await?;
        written.map_err(|error| update_failed(name, error))
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
    pub(super) async fn release_unseen_claims(&self, slot: &PodSlot) -> Result<(), Error> {
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
                Err(error) => Err(lookup_failed(slot, (name.into_owned(), error))),
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
            live => live.map_err(|error| update_failed(name, error))?,
        };
        if Owner::pod(slot).has_owner_ref(&live.object) {
            remove_pod_refs(&mut live, self.set, slot);
            self.write_claim(live).await?;
        }
        Ok(())
    }

    /// Reads a claim live, for an update of its owners.
    async fn read_same_claim(&self, claim: &Claim) -> Result<Live<Claim>, Error> {
        let (name, objects) = (&claim.name, &self.control.objects);
        let live = objects.read_claim(&claim.namespace, name).await;
        live.and_then(|live| live.with_uid(&claim.uid, PersistentVolumeClaims, "claim"))
            .map_err(|error| update_failed(name, error))
    }

    async fn write_claim(&self, claim: Live<Claim>) -> Result<(), Error> {
        let name = claim.object.name.clone();
        let objects = &self.control.objects;
        let written = objects.update_claim(self.set, claim, Timing::Queued);
        written.await.map_err(|error| update_failed(&name, error))
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
}

/// Returns the error of a failed lookup before an update of a claim's owners.
fn lookup_failed(slot: &PodSlot, (claim, error): (String, ApiError)) -> Error {
    let pod = slot.name();
    let action = format!(
        "Could not retrieve claim {claim} not found for {pod} when checking PVC deletion policy"
    );
    Error::claim(error, action)
}

/// Returns the error of a failed update of a claim's owners.
fn update_failed(claim: &str, error: ApiError) -> Error {
    let action = format!("could not update claim {claim} for delete policy ownerRefs");
    Error::claim(error, action)
}
