//! The control plane's one clock: wall-clock time that follows tokio's timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The longest time that anything takes: thirty years.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The moment when a time has passed, which may be any that a request or an annotation names.
/// What would take longer than thirty years takes thirty years.
pub fn later(moment: Instant, time: Duration) -> Instant {
    let later = moment.checked_add(time.min(LONGEST));
    later.unwrap_or(moment)
}

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

/// A clock that is ahead of another one, or behind it. The difference can change at any time, so
/// that the time jumps. Give one to a component to let its clock differ from the server's.
#[derive(Debug)]
pub struct SkewedClock {
    clock: Arc<dyn Clock>,
    /// In milliseconds; negative is behind.
    ahead: AtomicI64,
}

impl SkewedClock {
    /// A clock that shows what `clock` shows.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            ahead: AtomicI64::new(0),
        }
    }

    /// Sets how far it is ahead, to the millisecond; negative is behind.
    pub fn set_ahead(&self, ahead: SignedDuration) {
        let milliseconds = i64::try_from(ahead.as_millis()).unwrap_or_default();
        self.ahead.store(milliseconds, Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let ahead = SignedDuration::from_millis(self.ahead.load(Ordering::Relaxed));
        now.saturating_add(ahead).unwrap_or(now)
    }
}
