//! The leader election of a controller and the delivery of its events.

use std::time::Duration;

use statefulset_client::leaderelection::{Ended, LeaderElector};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::events::Events;
use crate::error::RunError;

/// Time limit for sending the last event.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(1);

/// An election that the controller is about to join.
pub(super) struct Election {
    pub(super) elector: LeaderElector,
    /// The events about the lease, sent without a fence; `None` if the caller receives them.
    pub(super) events: Option<Events>,
}

impl Election {
    /// Runs the work while this process leads. Returns `Ok` without running it if stopped before.
    pub(super) async fn run(
        self,
        stop: &CancellationToken,
        work: impl Future<Output = Result<(), RunError>>,
    ) -> Result<(), RunError> {
        let stop_events = CancellationToken::new();
        let sending = self.events.map(|events| events.send(&stop_events));
        let mut sinks = sending.unwrap_or_default();
        match self.elector.run(stop, work).await {
            Ended::NeverLed => Ok(()),
            Ended::Lost(lost) => Err(RunError::LeaseLost(lost)),
            Ended::Finished(result) => {
                // The elector held the only recorder, so the sink ends once its queue is empty.
                if timeout(EVENT_FLUSH_MAX, sinks.join_next()).await.is_err() {
                    stop_events.cancel();
                }
                result
            }
        }
    }
}
