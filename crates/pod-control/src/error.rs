//! Errors of pods and claims; their texts appear in events.

use std::sync::Arc;

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::live_set_check::LiveSetError;

use crate::stateful_set_utils::Ordinal;

/// A failure to create, repair or delete a pod or a claim.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server rejected a request for a pod or can't be reached.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The set's ordinal is too large for a pod.
    #[error("ordinal {0} is larger than 2147483647; lower spec.ordinals.start or spec.replicas")]
    OrdinalPastLargest(Ordinal),
    /// A claim can't be looked up, created or written.
    #[error("{action}: {source}")]
    Claim {
        /// The failed action, with the claim's name.
        action: String,
        /// The error of the cache, the API server or the transport.
        source: ApiError,
    },
    /// A claim that the pod needs is being deleted.
    #[error("pvc {0} is being deleted")]
    ClaimBeingDeleted(String),
    /// The live set forbids a write after which claims would be deleted.
    #[error("will not {action}: {source}")]
    DeletesClaims {
        /// The write that was not made.
        action: String,
        /// The difference in the live set, or the failure to read it.
        source: Arc<LiveSetError>,
    },
    /// Several claims failed.
    #[error("{0}")]
    Several(#[from] Aggregate),
}

impl Error {
    /// Returns the error of a failed action on a claim.
    pub(crate) fn claim(source: ApiError, action: String) -> Self {
        Self::Claim { action, source }
    }

    /// Returns the error of a failed lookup of a pod's claim before an update of its owners.
    pub(crate) fn claim_lookup_failed(pod: &str, claim: &str, source: ApiError) -> Self {
        let action = format!(
            "Could not retrieve claim {claim} not found for {pod} when checking PVC deletion policy"
        );
        Self::claim(source, action)
    }

    /// Returns the error of a failed update of a claim's owners.
    pub(crate) fn claim_update_failed(claim: &str, source: ApiError) -> Self {
        let action = format!("could not update claim {claim} for delete policy ownerRefs");
        Self::claim(source, action)
    }

    /// True if the API server reported a conflict. False for an aggregate.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(error) | Self::Claim { source: error, .. } if error.is_conflict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleting(claim: &str) -> Error {
        Error::ClaimBeingDeleted(claim.to_owned())
    }

    #[test]
    fn joined_errors_are_flattened_and_deduplicated() {
        assert!(Aggregate::join::<Error>(Vec::new()).is_ok());
        let inner = Aggregate::join(vec![deleting("b"), deleting("a")]).unwrap_err();
        let outer = Aggregate::join(vec![deleting("a"), inner]).unwrap_err();
        assert_eq!(
            outer.to_string(),
            "[pvc a is being deleted, pvc b is being deleted]"
        );
    }

    #[test]
    fn only_a_single_error_is_a_conflict() {
        let conflict = || Error::Claim {
            action: "update".to_owned(),
            source: ApiError::api(409, "Conflict", "changed"),
        };
        assert!(conflict().is_conflict());
        assert!(!Aggregate::join(vec![conflict()]).unwrap_err().is_conflict());
        let taken = Error::Api(ApiError::api(409, "AlreadyExists", "taken"));
        assert!(!taken.is_conflict());
    }
}
