//! Creation of a pod's claims, and updates of their owners.

use std::sync::Arc;

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, ClaimTemplate};

use super::{SetPodControl, Timing};
use crate::error::Error;
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::{
    NewClaim, Owner, OwnersChange, claim_names, has_unexpected_controller,
    is_claim_owner_up_to_date, is_policy_unknown, persistent_volume_claim_name, remove_owner_ref,
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
        for template in self.set.spec.claim_templates.iter() {
            if let Err(error) = self.create_claim(slot, template).await {
                errors.push(error);
            }
        }
        Error::join(errors)
    }

    async fn create_claim(&self, slot: &PodSlot, template: &ClaimTemplate) -> Result<(), Error> {
        let (set, objects) = (self.set, &self.control.objects);
        let claim = persistent_volume_claim_name(set, &template.name, slot.ordinal());
        match objects.get_claim(set.namespace(), &claim) {
            Ok(Some(existing)) if existing.deletion_timestamp.is_some() => {
                Err(Error::ClaimBeingDeleted { claim })
            }
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                let created = match NewClaim::new(set, template, slot.ordinal()) {
                    Ok(new_claim) => objects.create_claim(set, &new_claim).await,
                    Err(error) => Err(ApiError::InvalidRequest(format!(
                        "cannot read claim template {}: {error}",
                        template.name
                    ))),
                };
                if !created.as_ref().is_err_and(ApiError::is_already_exists) {
                    self.record_claim_event(slot.name(), &claim, created.as_ref().err());
                }
                created.map_err(|source| Error::CreateClaim { claim, source })
            }
            Err(source) => {
                self.record_claim_event(slot.name(), &claim, Some(&source));
                Err(Error::RetrieveClaim { claim, source })
            }
        }
    }

    /// True if the pod's cached claims have the owners that the retention policy wants. Ignores
    /// missing claims.
    ///
    /// # Errors
    ///
    /// The cache fails to look up a claim.
    ///
    /// Upstream: `ClaimsMatchRetentionPolicy`.
    pub fn claims_match_retention_policy(&self, slot: &PodSlot) -> Result<bool, Error> {
        for name in claim_names(self.set, slot.ordinal()) {
            let claim = self
                .control
                .objects
                .get_claim(self.set.namespace(), &name)
                .map_err(|source| Error::CheckClaim {
                    claim: name,
                    pod: slot.name().to_owned(),
                    source,
                })?;
            if claim.is_some_and(|claim| !is_claim_owner_up_to_date(&claim, self.set, slot)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sets the owners of the pod's claims as the retention policy wants.
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
        for name in claim_names(set, slot.ordinal()) {
            if let Some(claim) = self.retained_claim(slot, &name)? {
                self.update_owners(slot, &claim).await?;
            }
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
        if is_claim_owner_up_to_date(claim, set, slot) {
            return Ok(());
        }

        let mut live = self.read_same_claim(claim).await?;
        if is_claim_owner_up_to_date(&live.object, set, slot) {
            return Ok(());
        }
        let change =
            update_claim_owner_ref_for_set_and_pod(&mut live.json, &live.object, set, slot);
        if change == OwnersChange::Removes {
            return self.write_claim(live, Timing::Queued).await;
        }
        // No step may come between this check and the write.
        let passed = self.live_set.passes(&*self.control.objects, set).await;
        let _turn = passed.map_err(|reason| Error::OwnClaim {
            claim: name.to_string(),
            reason,
        })?;
        self.write_claim(live, Timing::AtOnce).await
    }

    /// Removes the pod from the owners of its claims, so that they outlive it. Changes only the
    /// owners and adds none, so the live set needs no check.
    ///
    /// # Errors
    ///
    /// Error of the first claim that can't be read or written.
    pub async fn release_claims(&self, slot: &PodSlot) -> Result<(), Error> {
        for name in claim_names(self.set, slot.ordinal()) {
            let released = self.release_claim(slot, &name).await;
            released.map_err(|error| self.failed(super::Verb::Update, slot.name(), error))?;
        }
        Ok(())
    }

    async fn release_claim(&self, slot: &PodSlot, name: &str) -> Result<(), Error> {
        let owner = Owner::pod(slot);
        let Some(claim) = self.retained_claim(slot, name)? else {
            return Ok(());
        };
        // The cache may lack an owner if the response of its write was lost, and a terminal pod is
        // deleted next.
        let is_cache_enough = self.set.spec.claim_retention_policy.when_scaled
            == ClaimRetentionPolicyType::Retain
            || !slot.existing().is_some_and(|pod| pod.is_terminal());
        if is_cache_enough && !owner.has_owner_ref(&claim) {
            return Ok(());
        }
        let mut live = self.read_same_claim(&claim).await?;
        if owner.has_owner_ref(&live.object) {
            remove_owner_ref(&mut live.json, slot.uid());
            self.write_claim(live, Timing::Queued).await?;
        }
        Ok(())
    }

    /// Returns a cached claim, for an update of its owners.
    fn retained_claim(&self, slot: &PodSlot, name: &str) -> Result<Option<Arc<Claim>>, Error> {
        let cached = self.control.objects.get_claim(self.set.namespace(), name);
        cached.map_err(|source| Error::RetainClaim {
            claim: name.to_owned(),
            pod: slot.name().to_owned(),
            source,
        })
    }

    /// Reads a claim live, for an update of its owners.
    async fn read_same_claim(&self, claim: &Claim) -> Result<Live<Claim>, Error> {
        let name = &claim.name;
        let read = self.control.objects.read_claim(&claim.namespace, name);
        let live = read.await.map_err(|source| update_claim(name, source))?;
        if live.object.uid != claim.uid {
            return Err(update_claim(name, another_claim(name)));
        }
        Ok(live)
    }

    async fn write_claim(&self, claim: Live<Claim>, timing: Timing) -> Result<(), Error> {
        let name = claim.object.name.clone();
        let written = self.control.objects.update_claim(self.set, claim, timing);
        let written = written.await;
        written.map_err(|source| update_claim(&name, source))
    }

    /// Returns the first of the pod's claims that an earlier pod of this name owns and that the
    /// garbage collector will therefore delete. Claims that are retained on scaling are never
    /// stale.
    ///
    /// # Errors
    ///
    /// The cache fails to look up a claim.
    ///
    /// Upstream: `PodClaimIsStale`, which returns no name.
    pub fn stale_pod_claim(&self, slot: &PodSlot) -> Result<Option<String>, Error> {
        let set = self.set;
        if set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Retain {
            return Ok(None);
        }
        for name in claim_names(set, slot.ordinal()) {
            let claim = self.control.objects.get_claim(set.namespace(), &name)?;
            if claim.is_some_and(|claim| Owner::pod(slot).has_stale_owner_ref(&claim)) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

fn update_claim(claim: &str, source: ApiError) -> Error {
    let claim = claim.to_owned();
    Error::UpdateClaim { claim, source }
}

fn another_claim(name: &str) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on persistentvolumeclaims {name:?}: the claim was recreated; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}
