//! What can go wrong with revisions.

use kube_apimachinery::json::ParseError;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::schema::DecodeError;
use kube_apimachinery::strategic_merge::StrategicMergeError;
use statefulset_client::error::Error as ApiError;

/// Why a revision can't be built, applied or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or can't be reached.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The set's template has no JSON value.
    #[error("cannot read spec.template: {0}")]
    Template(#[from] ParseError),
    /// Recorded data isn't a JSON object.
    #[error("invalid JSON document")]
    InvalidDocument,
    /// Recorded data has a value that its type can't hold.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Recorded data patches the template in a way that can't be applied.
    #[error("cannot apply revision {revision}: {source}")]
    Merge {
        /// The revision.
        revision: ObjectKey,
        /// What is wrong with it.
        source: StrategicMergeError,
    },
    /// A revision to adopt has a controller already.
    #[error("attempt to adopt revision owned by {owner}")]
    Owned {
        /// Kind and name of the controller.
        owner: String,
    },
}

impl Error {
    /// Whether the API server answered that the object changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_conflict())
    }

    /// Whether the API server answered that there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_not_found())
    }
}
