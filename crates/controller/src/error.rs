//! What can go wrong in a sync.

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::leaderelection::Lost;
use statefulset_controller_util::consistency::{StaleCache, TrackedResource};
use statefulset_controller_util::controller_ref_manager::ClaimError;

/// Why a set couldn't be synced. It is tried again with a growing delay; after
/// [`Error::SetAside`], which no try changes, every 30 seconds.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cache doesn't show the controller's own writes yet.
    #[error("{0}")]
    StaleCache(#[from] StaleCache),
    /// An object of the set can't be decoded.
    #[error(
        "{resource} {object} cannot be decoded: {reason}; not syncing the set until it can, or is gone"
    )]
    SetAside {
        /// Its resource.
        resource: TrackedResource,
        /// Its namespace and name.
        object: ObjectKey,
        /// Why it can't be decoded.
        reason: String,
    },
    /// The sync panicked: a bug of this program, whatever the set holds.
    #[error("the sync panicked: {message}; report this as a bug, with the objects of the set")]
    Panicked {
        /// What it panicked with.
        message: String,
    },
    /// The set may not adopt revisions.
    #[error("can't adopt ControllerRevisions: {0}")]
    CanAdoptRevisions(String),
    /// Pods can't be adopted or released.
    #[error("{0}")]
    ClaimPods(#[from] ClaimError),
    /// The set can't be brought to its wanted state.
    #[error("{0}")]
    Update(#[from] statefulset_set_control::Error),
}

impl Error {
    /// What the API answered, where that is at the bottom of it.
    pub(crate) fn api_error(&self) -> Option<&statefulset_client::error::Error> {
        let first: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(first), |&error| error.source())
            .find_map(|error| error.downcast_ref())
    }
}

/// The failure that ended a controller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An informer, a handler or a worker panicked: a bug.
    #[error("a task of the controller panicked: {message}; report this as a bug")]
    Panicked {
        /// The text that it panicked with.
        message: String,
    },
    /// Shared informers ended before the controller, so its caches no longer change.
    #[error("an informer of the controller has ended")]
    InformerEnded,
    /// Syncs in progress did not finish in time.
    #[error("controller shutdown timeout reached")]
    ShutdownTimeout,
    /// The lease was lost. End the process: its caches may have missed the next leader's writes.
    #[error("the lease is lost: {0}")]
    LeaseLost(Lost),
}
