//! Errors of revisions.

use kube_apimachinery::json::ParseError;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::schema::DecodeError;
use kube_apimachinery::strategic_merge::StrategicMergeError;
use statefulset_client::error::Error as ApiError;

/// A failure to build, apply or write a revision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server rejected the request or can't be reached.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The set's template can't be encoded as JSON.
    #[error("cannot read spec.template: {0}")]
    Template(#[from] ParseError),
    /// Recorded data isn't a JSON object.
    #[error("invalid JSON document")]
    InvalidDocument,
    /// A recorded value doesn't fit its type.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// The recorded patch can't be applied to the template.
    #[error("cannot apply revision {revision}: {source}")]
    Merge {
        /// The revision.
        revision: ObjectKey,
        /// The cause.
        source: StrategicMergeError,
    },
    /// The revision to adopt has a controller.
    #[error("attempt to adopt revision owned by {} {}", .0.kind, .0.name)]
    Owned(Box<OwnerReference>),
}

impl Error {
    /// True if the API server reported a conflict.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_conflict())
    }

    /// True if the API server reported that the object doesn't exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_not_found())
    }
}
