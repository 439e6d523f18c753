//! Errors of syncs and of the controller.

use std::sync::Arc;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::indexer::Undecodable;
use statefulset_client::config::ConfigError;
use statefulset_client::leaderelection::Lost;
use statefulset_controller_util::consistency::{StaleCache, TrackedResource};
use statefulset_controller_util::controller_ref_manager::{CanAdoptError, ClaimError};
use statefulset_controller_util::live_set_check::LiveSetError;
use statefulset_fence::SameUser;

/// A failed sync. Retried with increasing delay; [`Error::SetAside`] is retried every 30 seconds.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A cache doesn't show the controller's writes yet.
    #[error("{0}")]
    StaleCache(#[from] StaleCache),
    /// Decoding an object of the set failed. Expected only if the API server sends what this program
    /// doesn't know.
    #[error(
        "{resource} {object} cannot be decoded: {source}; not syncing the set until it can be decoded or is deleted"
    )]
    SetAside {
        /// Its resource.
        resource: TrackedResource,
        /// Its namespace and name.
        object: ObjectKey,
        /// The decoding error.
        #[source]
        source: Undecodable,
    },
    /// The sync panicked. No content of a set may cause this, so it is a bug in this program.
    #[error("the sync panicked: {message}; report this as a bug, with the objects of the set")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The set must not adopt revisions.
    #[error("can't adopt ControllerRevisions: {0}")]
    CanAdoptRevisions(#[source] CanAdoptError),
    /// Pods can't be adopted or released.
    #[error("{0}")]
    ClaimPods(#[from] ClaimError),
    /// The update of the set failed.
    #[error("{0}")]
    Update(#[from] statefulset_set_control::Error),
}

impl Error {
    /// Returns the API error that caused this error, if any; none for the live read of a set, which
    /// fails only that set's sync.
    pub(crate) fn api_error(&self) -> Option<&statefulset_client::error::Error> {
        let first: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(first), |&error| error.source())
            .take_while(|error| !is_live_read(*error))
            .find_map(|error| error.downcast_ref())
    }
}

/// True for the error of a check against the live set.
fn is_live_read(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<CanAdoptError>()
        || error.is::<Arc<CanAdoptError>>()
        || error.is::<Arc<LiveSetError>>()
}

/// The error that stopped a controller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An informer, a handler or a worker panicked, which is a bug.
    #[error("a task of the controller panicked: {message}; report this as a bug")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// Shared informers stopped before the controller, so its caches no longer change.
    #[error("an informer of the controller has stopped")]
    InformerEnded,
    /// Syncs in progress did not finish in time.
    #[error("controller shutdown timeout reached")]
    ShutdownTimeout,
    /// The lease was lost. Exit the process: its caches may have missed the next leader's writes.
    #[error("the lease is lost: {0}")]
    LeaseLost(#[source] Lost),
    /// The fence can't tell this program from the built-in controller.
    #[error("{0}")]
    SameUser(#[from] SameUser),
    /// A client for the informers can't be created.
    #[error("{0}")]
    Client(#[from] ConfigError),
}
