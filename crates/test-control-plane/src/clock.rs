//! The control plane's one clock: wall-clock time that follows tokio's timers.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the wall-clock time that timestamps are written with.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// A clock that starts at a given time and then follows tokio's time, so that it stands still
/// and jumps with paused time.
#[derive(Clone, Debug)]
pub struct TokioClock {
    base: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// Starts a clock that shows `base` now. Must be called inside a tokio runtime if its time
    /// is paused.
    pub fn starting_at(base: Timestamp) -> Self {
        Self {
            base,
            started: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.base.saturating_add(elapsed).unwrap_or(self.base)
    }
}
