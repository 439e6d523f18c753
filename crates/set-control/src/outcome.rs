//! The outcome of a sync.

use std::time::Duration;

use statefulset_controller_util::stateful_set::StatefulSetStatus;

use crate::error::Error;
use crate::waiting::Waiting;

/// Outcome of one sync. Status and error are independent: a sync that fails after it counted the
/// pods has both.
#[derive(Debug, Default)]
pub struct SyncOutcome {
    /// The computed status, written or not.
    pub status: Option<StatefulSetStatus>,
    /// The reason for stopping early; `None` if the set is in its desired state.
    pub waiting: Option<Waiting>,
    /// The failure, if any.
    pub error: Option<Error>,
    /// Maximum number of unavailable pods during an update, a gauge. Known with the gate
    /// `MaxUnavailableStatefulSet` once the status is computed.
    pub max_unavailable: Option<usize>,
    /// Number of unavailable pods, a gauge. Known with the gate `MaxUnavailableStatefulSet` if the
    /// sync reached the update phase.
    pub unavailable_replicas: Option<usize>,
    /// Delay before the next sync, which needs no event.
    pub requeue_after: Option<Duration>,
}

impl From<Error> for SyncOutcome {
    /// Outcome of a sync that failed before it computed a status.
    fn from(error: Error) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl From<Waiting> for SyncOutcome {
    /// Outcome of a sync that stopped before it computed a status.
    fn from(waiting: Waiting) -> Self {
        Self {
            waiting: Some(waiting),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_sync_has_its_reason_alone() {
        let outcome = SyncOutcome::from(Waiting::SetGone);
        assert_eq!(outcome.waiting, Some(Waiting::SetGone));
        assert!(outcome.error.is_none() && outcome.status.is_none());
    }
}
