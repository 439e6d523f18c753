//! Errors of pods and claims; their texts appear in events.

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::error::{Aggregate, ErrorMembers};

use crate::stateful_set_utils::Ordinal;

/// A failure to create, repair or delete a pod or a claim.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server rejected a request for a pod or can't be reached.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The set's ordinal is too large for a pod.
    #[error(
        "ordinal {ordinal} is larger than 2147483647; lower spec.ordinals.start or spec.replicas"
    )]
    OrdinalPastLargest {
        /// The ordinal.
        ordinal: Ordinal,
    },
    /// A claim can't be created.
    #[error("failed to create PVC {claim}: {source}")]
    CreateClaim {
        /// The claim.
        claim: String,
        /// The API server's error.
        source: ApiError,
    },
    /// A claim can't be looked up.
    #[error("failed to retrieve PVC {claim}: {source}")]
    RetrieveClaim {
        /// The claim.
        claim: String,
        /// The cache's error.
        source: ApiError,
    },
    /// A claim that the pod needs is being deleted.
    #[error("pvc {claim} is being deleted")]
    ClaimBeingDeleted {
        /// The claim.
        claim: String,
    },
    /// A claim can't be looked up while its owners are compared.
    #[error(
        "Could not retrieve claim {claim} for {pod} when checking PVC deletion policy: {source}"
    )]
    CheckClaim {
        /// The claim.
        claim: String,
        /// The pod that uses it.
        pod: String,
        /// The cache's error.
        source: ApiError,
    },
    /// A claim can't be looked up while its owners are rewritten.
    #[error(
        "Could not retrieve claim {claim} not found for {pod} when checking PVC deletion policy: {source}"
    )]
    RetainClaim {
        /// The claim.
        claim: String,
        /// The pod that uses it.
        pod: String,
        /// The cache's error.
        source: ApiError,
    },
    /// A claim's owners can't be rewritten.
    #[error("could not update claim {claim} for delete policy ownerRefs: {source}")]
    UpdateClaim {
        /// The claim.
        claim: String,
        /// The API server's error.
        source: ApiError,
    },
    /// The live set forbids an additional owner of a claim.
    #[error("will not add an owner to claim {claim}, with which it would be deleted: {reason}")]
    OwnClaim {
        /// The claim.
        claim: String,
        /// The difference in the live set, or the failure to read it.
        reason: String,
    },
    /// The live set forbids the deletion of a pod together with its claims.
    #[error("will not delete pod {pod}, with which its claims would be deleted: {reason}")]
    DeleteWithClaims {
        /// The pod.
        pod: String,
        /// The difference in the live set, or the failure to read it.
        reason: String,
    },
    /// Several claims failed.
    #[error("{0}")]
    Several(#[source] Box<Aggregate<Error>>),
}

impl Error {
    /// Joins errors; an empty list is success.
    pub(crate) fn join(errors: Vec<Self>) -> Result<(), Self> {
        Aggregate::new(errors).map_or(Ok(()), |errors| Err(Self::Several(Box::new(errors))))
    }

    /// Returns the API error of this error, unless it holds several.
    fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(source)
            | Self::CreateClaim { source, .. }
            | Self::RetrieveClaim { source, .. }
            | Self::CheckClaim { source, .. }
            | Self::RetainClaim { source, .. }
            | Self::UpdateClaim { source, .. } => Some(source),
            Self::OrdinalPastLargest { .. }
            | Self::ClaimBeingDeleted { .. }
            | Self::OwnClaim { .. }
            | Self::DeleteWithClaims { .. }
            | Self::Several(_) => None,
        }
    }

    /// True if the API server reported a conflict.
    pub fn is_conflict(&self) -> bool {
        self.api().is_some_and(ApiError::is_conflict)
    }

    /// True if the API server reported that the name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.api().is_some_and(ApiError::is_already_exists)
    }
}

impl ErrorMembers for Error {
    fn member_texts(&self, out: &mut Vec<String>) {
        match self {
            Self::Several(aggregate) => aggregate.member_texts(out),
            other => out.push(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleting(claim: &str) -> Error {
        let claim = claim.to_owned();
        Error::ClaimBeingDeleted { claim }
    }

    #[test]
    fn joined_errors_are_flattened_and_deduplicated() {
        assert!(Error::join(Vec::new()).is_ok());
        let inner = Error::join(vec![deleting("b"), deleting("a")]).unwrap_err();
        let outer = Error::join(vec![deleting("a"), inner]).unwrap_err();
        assert_eq!(
            outer.to_string(),
            "[pvc a is being deleted, pvc b is being deleted]"
        );
    }

    #[test]
    fn only_a_single_error_is_a_conflict() {
        let conflict = || Error::UpdateClaim {
            claim: "data".to_owned(),
            source: ApiError::api(409, "Conflict", "changed"),
        };
        assert!(conflict().is_conflict());
        assert!(!conflict().is_already_exists());
        assert!(!Error::join(vec![conflict()]).unwrap_err().is_conflict());
        let taken = Error::Api(ApiError::api(409, "AlreadyExists", "taken"));
        assert!(taken.is_already_exists() && !taken.is_conflict());
    }
}
