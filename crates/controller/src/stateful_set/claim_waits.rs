//! Sets that wait for the removal of a claim, or for any change of one that grows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::indexer::Indexer;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::error::Aggregate;
use statefulset_opt_ins::AwaitedClaim;
use statefulset_pod_control::Error as PodError;
use statefulset_set_control::{SyncOutcome, Waiting};

use crate::error::Error;

/// The sets that wait for a claim, by claim. Takes memory only for those.
#[derive(Debug, Default)]
pub(crate) struct ClaimWaits {
    /// Sets that wait for the removal.
    removals: SetsByClaim,
    /// Sets that wait for any change.
    changes: SetsByClaim,
}

#[derive(Debug, Default)]
struct SetsByClaim(Mutex<BTreeMap<ObjectKey, ObjectKey>>);

impl ClaimWaits {
    /// Records that a set waits for the removal of claims of its namespace.
    pub(crate) fn record(&self, set: &ObjectKey, claims: Vec<Box<str>>) {
        for claim in claims {
            self.removals.insert(set, &claim);
        }
    }

    /// Records that a set waits for changes of claims. Returns false if the cache already has a later
    /// version of one than the sync saw: then no event may come.
    pub(crate) fn record_changes(
        &self,
        set: &ObjectKey,
        claims: &[AwaitedClaim],
        cache: &Indexer<Claim>,
    ) -> bool {
        for claim in claims {
            self.changes.insert(set, &claim.name);
        }
        claims.iter().all(|claim| {
            let cached = cache.get(set.namespace(), &claim.name);
            cached.is_some_and(|cached| cached.resource_version == claim.resource_version)
        })
    }

    /// Removes and returns the set that waits for the removal of a claim.
    pub(crate) fn take(&self, claim: &ObjectKey) -> Option<ObjectKey> {
        self.removals.take(claim)
    }

    /// Removes and returns the set that waits for a change of a claim.
    pub(crate) fn take_changed(&self, claim: &ObjectKey) -> Option<ObjectKey> {
        self.changes.take(claim)
    }
}

impl SetsByClaim {
    fn insert(&self, set: &ObjectKey, claim: &str) {
        let claim = ObjectKey::new(set.namespace(), claim);
        self.lock().insert(claim, set.clone());
    }

    fn take(&self, claim: &ObjectKey) -> Option<ObjectKey> {
        self.lock().remove(claim)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the growing claims whose next change brings a synced set on.
pub(crate) fn growing_claims(outcome: &SyncOutcome) -> &[AwaitedClaim] {
    let growth = outcome.growth.as_ref();
    growth.map_or(&[], |growth| &growth.awaited)
}

/// Returns the names of the claims for whose removal a synced set waits: the first that an earlier
/// pod owns.
pub(crate) fn awaited_claims(outcome: &SyncOutcome) -> Vec<Box<str>> {
    match &outcome.waiting {
        Some(Waiting::StaleClaim { claim, .. }) => vec![claim.clone()],
        _ => Vec::new(),
    }
}

/// The terminating claims for whose removal a failed sync waits.
#[derive(Debug, Default)]
pub(crate) struct ClaimsBeingDeleted {
    /// Their names.
    pub(crate) claims: Vec<Box<str>>,
    /// True if the sync also failed for another reason.
    pub(crate) has_other_causes: bool,
}

impl ClaimsBeingDeleted {
    /// Finds the claims among the causes of an error.
    pub(crate) fn of(error: &Error) -> Self {
        let mut found = Self::default();
        Aggregate::visit_causes(error, &mut |cause| {
            if let Some(PodError::ClaimBeingDeleted(claim)) = cause.downcast_ref() {
                found.claims.push(claim.as_str().into());
            } else if cause.source().is_none() {
                found.has_other_causes = true;
            }
        });
        found
    }
}
