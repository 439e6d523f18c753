//! What can go wrong in a sync.

use statefulset_controller_util::consistency::StaleCache;
use statefulset_controller_util::controller_ref_manager::ClaimError;

/// Why a set couldn't be synced. Every one of them is retried with a growing delay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cache doesn't show the controller's own writes yet.
    #[error("{0}")]
    StaleCache(#[from] StaleCache),
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
