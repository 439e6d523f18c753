//! Errors of a sync.

use kube_apimachinery::int_or_string::IntOrStringError;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::SelectorError;
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::error::Aggregate;

/// A failure to sync a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A revision can't be built, applied or written.
    #[error("{0}")]
    History(#[from] statefulset_history::Error),
    /// A pod or a claim can't be read or written.
    #[error("{0}")]
    Pod(#[from] statefulset_pod_control::Error),
    /// The status can't be written.
    #[error("{0}")]
    Status(#[source] ApiError),
    /// `maxUnavailable` is neither a number nor a percentage.
    #[error("{0}")]
    MaxUnavailable(#[from] IntOrStringError),
    /// The set's selector can't be compiled.
    #[error("{0}")]
    Selector(#[from] SelectorError),
    /// The set has the strategy `Recreate`, whose gate is off.
    #[error(
        "statefulset {0} uses Recreate strategy but feature gate \
         StatefulSetRecreateStrategy is disabled"
    )]
    RecreateDisabled(ObjectKey),
    /// Several errors.
    #[error("{0}")]
    Several(#[from] Aggregate),
}
