//! The outcome of a sync.

use std::time::Duration;

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::StatefulSetStatus;
use statefulset_opt_ins::{Awaited, Growth, Situation, claim_growth};
use statefulset_pod_control::Error as PodError;

use crate::error::Error;
use crate::waiting::Waiting;

/// Outcome of one sync. Status and error are independent: a sync that fails after it counted the
/// pods has both.
#[derive(Debug, Default)]
#[non_exhaustive]
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
    /// The cause of waiting as conditions name it. Known with a gate of an opt-in, unless the set is
    /// being deleted.
    pub situation: Option<Situation>,
    /// The claims with a size for which the set asks, if it asks for any.
    pub growth: Option<Growth>,
}

impl SyncOutcome {
    /// Returns what the set waits for, for its conditions.
    pub(crate) fn awaited(&self) -> Awaited<'_> {
        match (&self.error, &self.waiting) {
            (Some(_), _) => Awaited::Retry,
            (None, Some(waiting)) => waiting.awaited(),
            (None, None) => Awaited::Nothing,
        }
    }

    /// Takes over the growth of the set's claims, and reports it in the status. After a failure the
    /// recorded condition stays.
    ///
    /// # Errors
    ///
    /// The growth failed.
    pub(crate) fn note_growth(
        &mut self,
        growth: Result<Option<Growth>, PodError>,
        status: &mut StatefulSetStatus,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.growth = growth?;
        let growth = self.growth.as_ref();
        claim_growth::condition::report(status, growth, now);
        self.requeue_within(growth.and_then(|growth| growth.retry_after));
        Ok(())
    }

    /// Makes the next sync follow after at most this delay.
    pub fn requeue_within(&mut self, delay: Option<Duration>) {
        let delays = self.requeue_after.into_iter().chain(delay);
        self.requeue_after = delays.min();
    }
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
    fn earliest_requeue_counts() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut outcome = SyncOutcome::default();
        for (delay, expected) in [
            (None, None),
            (seconds(9), seconds(9)),
            (seconds(3), seconds(3)),
            (seconds(7), seconds(3)),
            (None, seconds(3)),
        ] {
            outcome.requeue_within(delay);
            assert_eq!(outcome.requeue_after, expected);
        }
    }

    #[test]
    fn stopped_sync_has_its_reason_alone() {
        let outcome = SyncOutcome::from(Waiting::SetGone);
        assert_eq!(outcome.waiting, Some(Waiting::SetGone));
        assert!(outcome.error.is_none() && outcome.status.is_none());
    }
}
