//! Sets that wait for the removal of a claim.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use statefulset_controller_util::error::Aggregate;
use statefulset_pod_control::Error as PodError;
use statefulset_set_control::{SyncOutcome, Waiting};

use crate::error::Error;

/// The sets that wait for the removal of a claim, by claim. Takes memory only for those.
#[derive(Debug, Default)]
pub(crate) struct ClaimWaits(Mutex<BTreeMap<ObjectKey, ObjectKey>>);

impl ClaimWaits {
    /// Records that a set waits for claims of its namespace.
    pub(crate) fn record(&self, set: &ObjectKey, claims: Vec<Box<str>>) {
        if claims.is_empty() {
            return;
        }
        let mut waits = self.lock();
        for claim in claims {
            waits.insert(ObjectKey::new(set.namespace(), &claim), set.clone());
        }
    }

    /// Removes and returns the set that waits for a claim.
    pub(crate) fn take(&self, claim: &ObjectKey) -> Option<ObjectKey> {
        self.lock().remove(claim)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
