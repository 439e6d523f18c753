//! The outcome of a sync.

use std::time::Duration;

use statefulset_controller_util::stateful_set::StatefulSetStatus;

use crate::error::Error;
use crate::waiting::Waiting;

/// The outcome of one sync. Status and error are independent: a sync that fails after it counted
/// the pods has both.
#[derive(Debug, Default)]
pub struct SyncOutcome {
    /// The status as computed, whether it had to be written or not.
    pub status: Option<StatefulSetStatus>,
    /// The reason for which the sync went no further; none if the set is as wanted.
    pub waiting: Option<Waiting>,
    /// The failure.
    pub error: Option<Error>,
    /// The number of pods that may be unavailable during an update; known with the gate
    /// `MaxUnavailableStatefulSet` once the status was computed. A gauge.
    pub max_unavailable: Option<usize>,
    /// The number of unavailable pods; known with the gate `MaxUnavailableStatefulSet` if the sync
    /// came to the update phase. A gauge.
    pub unavailable_replicas: Option<usize>,
    /// The delay after which the set needs a sync without an event.
    pub requeue_after: Option<Duration>,
}

impl From<Error> for SyncOutcome {
    /// The outcome of a sync that failed before anything was computed.
    fn from(error: Error) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl From<Waiting> for SyncOutcome {
    /// The outcome of a sync that ended before anything was computed.
    fn from(waiting: Waiting) -> Self {
        Self {
            waiting: Some(waiting),
            ..Self::default()
        }
    }
}
