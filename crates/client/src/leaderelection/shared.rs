//! The part of an election that its health check sees.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::record::LeaderElectionRecord;
use crate::clock::MonotonicClock;

/// State shared by the elector and its [`LeaderHealth`](super::health::LeaderHealth).
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) lease_duration: Duration,
    pub(super) clock: Arc<dyn MonotonicClock>,
    pub(super) observed: Mutex<Observed>,
}

/// The last known state of the lease.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    pub(super) record: LeaderElectionRecord,
    /// Monotonic clock time of the last seen change.
    pub(super) at: Duration,
}

impl Shared {
    pub(super) fn observed(&self) -> Observed {
        let observed = self.observed.lock();
        observed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
