//! The control plane's clock: wall-clock time that follows tokio's timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
pub use kube_apimachinery::clock::Clock;
use tokio::time::Instant;

/// The maximum duration of a timer: thirty years.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns `moment` plus `time`, with `time` capped at thirty years. Requests and annotations can
/// hold any duration.
pub fn later(moment: Instant, time: Duration) -> Instant {
    let later = moment.checked_add(time.min(LONGEST));
    later.unwrap_or(moment)
}

/// A clock that starts at a given time and follows tokio's time, so that paused time stops it and
/// advanced time moves it.
#[derive(Clone, Debug)]
pub struct TokioClock {
    base: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// Returns a clock that starts at `base`. Must be called inside a tokio runtime if its time is
    /// paused.
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

/// A clock with an adjustable offset from another one. Changing the offset makes its time jump. Use
/// one for a component whose clock must differ from the server's.
#[derive(Debug)]
pub struct SkewedClock {
    clock: Arc<dyn Clock>,
    /// The offset in milliseconds; negative if the clock is behind.
    ahead: AtomicI64,
}

impl SkewedClock {
    /// Returns a clock without an offset from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            ahead: AtomicI64::new(0),
        }
    }

    /// Sets the offset, to the millisecond; negative if the clock is behind.
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
