//! What the pod control does to claims: create them, and give them their owners.

use std::sync::Arc;

use statefulset_client::error::Error as ApiError;
use statefulset_client::recorder::EventType;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::{
    ClaimRetentionPolicyType, ClaimTemplate, StatefulSet,
};

use crate::error::Error;
use crate::identity::claim_name;
use crate::live_set_check::LiveSetCheck;
use crate::real::RealStatefulPodControl;
use crate::retention::{
    Owner, Rewritten, has_unexpected_controller, is_claim_owner_up_to_date, is_claim_stale,
    is_policy_unknown, remove_owner, rewrite_owners,
};
use crate::slot::PodSlot;
use crate::storage::{NewClaim, claim_names};

impl RealStatefulPodControl {
    /// Creates the pod's claims that the cache doesn't hold. All are tried.
    ///
    /// Upstream: `createPersistentVolumeClaims`.
    pub(crate) async fn create_claims(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
    ) -> Result<(), Error> {
        let mut errors = Vec::new();
        for template in set.spec.claim_templates.iter() {
            if let Err(error) = self.create_claim(set, pod, template).await {
                errors.push(error);
            }
        }
        Error::join(errors)
    }

    async fn create_claim(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        template: &ClaimTemplate,
    ) -> Result<(), Error> {
        let claim = claim_name(set, &template.name, pod.ordinal());
        match self.objects.get_claim(set.namespace(), &claim) {
            Ok(Some(existing)) if existing.deletion_timestamp.is_some() => {
                Err(Error::ClaimBeingDeleted { claim })
            }
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                let created = match NewClaim::new(set, template, pod.ordinal()) {
                    Ok(new_claim) => self.objects.create_claim(set, &new_claim).await,
                    Err(error) => Err(ApiError::InvalidRequest(format!(
                        "cannot read claim template {}: {error}",
                        template.name
                    ))),
                };
                if !created.as_ref().is_err_and(ApiError::is_already_exists) {
                    self.record_claim_event(set, pod, &claim, created.as_ref().err());
                }
                created.map_err(|source| Error::CreateClaim { claim, source })
            }
            Err(source) => {
                self.record_claim_event(set, pod, &claim, Some(&source));
                Err(Error::RetrieveClaim { claim, source })
            }
        }
    }

    /// Upstream: `recordClaimEvent`.
    fn record_claim_event(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        claim: &str,
        error: Option<&ApiError>,
    ) {
        let (pod, set_name) = (pod.name(), set.name());
        let verb = if self.lower_case_events {
            "create"
        } else {
            "Create"
        };
        let (event_type, reason, message) = match error {
            None => (
                EventType::Normal,
                "SuccessfulCreate",
                format!("{verb} Claim {claim} Pod {pod} in StatefulSet {set_name} success"),
            ),
            Some(error) => (
                EventType::Warning,
                "FailedCreate",
                format!(
                    "{verb} Claim {claim} for Pod {pod} in StatefulSet {set_name} failed error: {error}"
                ),
            ),
        };
        self.recorder
            .event(&set.object_reference(), event_type, reason, &message);
    }

    /// Whether the pod's cached claims have the owners that the policy wants.
    ///
    /// Upstream: `ClaimsMatchRetentionPolicy`.
    pub(crate) fn claims_match(&self, set: &StatefulSet, pod: &PodSlot) -> Result<bool, Error> {
        for name in claim_names(set, pod.ordinal()) {
            let claim = self
                .objects
                .get_claim(set.namespace(), &name)
                .map_err(|source| Error::CheckClaim {
                    claim: name,
                    pod: pod.name().to_owned(),
                    source,
                })?;
            if claim.is_some_and(|claim| !is_claim_owner_up_to_date(&claim, set, pod)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the pod's claims the owners that the policy wants; stops at the first failure.
    ///
    /// Upstream: `UpdatePodClaimForRetentionPolicy`.
    pub(crate) async fn apply_retention(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        if is_policy_unknown(set) {
            let policy = set.spec.claim_retention_policy;
            tracing::error!(stateful_set = %set.key(), ?policy, "unknown retention policy, retaining claims");
        }
        for name in claim_names(set, pod.ordinal()) {
            if let Some(claim) = self.retained_claim(set, pod, &name)? {
                self.retain(set, pod, &claim, live_set).await?;
            }
        }
        Ok(())
    }

    async fn retain(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        claim: &Arc<Claim>,
        live_set: &LiveSetCheck,
    ) -> Result<(), Error> {
        let name = &claim.name;
        if has_unexpected_controller(claim, set, pod) {
            let message = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
            );
            let reason = "ConflictingController";
            self.recorder.event(
                &set.object_reference(),
                EventType::Warning,
                reason,
                &message,
            );
        }
        if is_claim_owner_up_to_date(claim, set, pod) {
            return Ok(());
        }

        let mut live = self.read_same_claim(claim).await?;
        if is_claim_owner_up_to_date(&live.object, set, pod) {
            return Ok(());
        }
        if rewrite_owners(&mut live.json, &live.object, set, pod) != Rewritten::AddsOwner {
            return self.write_claim(set, live).await;
        }
        // Nothing stands between this look and the write.
        let passed = live_set.passes(&*self.objects, set).await;
        let _turn = passed.map_err(|reason| Error::OwnClaim {
            claim: name.to_string(),
            reason,
        })?;
        self.write_claim(set, live).await
    }

    /// Removes the pod from the owners of its claims, so that they outlive it. Nothing else about
    /// the claims is changed, and no owner is added: the set needn't be looked at.
    pub(crate) async fn remove_from_owners(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
    ) -> Result<(), Error> {
        let owner = Owner::pod(pod);
        // An owner that was added without an answer may not be in the cache, and a pod that ended is
        // deleted next.
        let is_cache_enough = set.spec.claim_retention_policy.when_scaled
            == ClaimRetentionPolicyType::Retain
            || !pod.existing().is_some_and(|pod| pod.is_terminal());
        for name in claim_names(set, pod.ordinal()) {
            let Some(claim) = self.retained_claim(set, pod, &name)? else {
                continue;
            };
            if is_cache_enough && !owner.owns(&claim) {
                continue;
            }
            let mut live = self.read_same_claim(&claim).await?;
            if owner.owns(&live.object) {
                remove_owner(&mut live.json, pod.uid());
                self.write_claim(set, live).await?;
            }
        }
        Ok(())
    }

    /// The claim in the cache, for a change of its owners.
    fn retained_claim(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
        name: &str,
    ) -> Result<Option<Arc<Claim>>, Error> {
        let cached = self.objects.get_claim(set.namespace(), name);
        cached.map_err(|source| Error::RetainClaim {
            claim: name.to_owned(),
            pod: pod.name().to_owned(),
            source,
        })
    }

    /// Reads a claim live, to change its owners.
    async fn read_same_claim(&self, claim: &Claim) -> Result<Live<Claim>, Error> {
        let name = &claim.name;
        let read = self.objects.read_claim(&claim.namespace, name).await;
        let live = read.map_err(|source| update_claim(name, source))?;
        if live.object.uid != claim.uid {
            return Err(update_claim(name, another_claim(name)));
        }
        Ok(live)
    }

    async fn write_claim(&self, set: &StatefulSet, claim: Live<Claim>) -> Result<(), Error> {
        let name = claim.object.name.clone();
        let written = self.objects.update_claim(set, claim).await;
        written.map_err(|source| update_claim(&name, source))
    }

    /// The first of the pod's claims that belongs to an earlier pod of this name. Claims that are
    /// retained on scaling are never stale.
    ///
    /// Upstream: `PodClaimIsStale`.
    pub(crate) fn find_stale_claim(
        &self,
        set: &StatefulSet,
        pod: &PodSlot,
    ) -> Result<Option<String>, Error> {
        if set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Retain {
            return Ok(None);
        }
        for name in claim_names(set, pod.ordinal()) {
            if self
                .objects
                .get_claim(set.namespace(), &name)?
                .is_some_and(|claim| is_claim_stale(&claim, pod))
            {
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
        "Operation cannot be fulfilled on persistentvolumeclaims {name:?}: it is another claim than the one that was seen; please apply your changes to the latest version and try again"
    );
    ApiError::api(409, "Conflict", message)
}
