//! Wall clocks, which tests can replace, and monotonic clocks.
//!
//! Durations use tokio's clock instead of a [`Clock`]. Deadlines that other machines rely on use a
//! [`MonotonicClock`].

use jiff::Timestamp;

#[cfg(any(test, feature = "testing"))]
pub use fake::FakeClock;
pub use kube_apimachinery::clock::Clock;
pub use monotonic::{BootClock, MonotonicClock, TokioClock};

mod monotonic;

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[cfg(any(test, feature = "testing"))]
mod fake {
    //! A clock that changes only when a test sets it.

    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use jiff::Timestamp;

    use super::Clock;

    /// A clock that changes only when a test sets it.
    #[derive(Debug)]
    pub struct FakeClock {
        now: Mutex<Timestamp>,
    }

    impl FakeClock {
        /// Creates a clock with this time.
        pub fn new(now: Timestamp) -> Self {
            Self {
                now: Mutex::new(now),
            }
        }

        /// Sets the clock, forward or backward.
        pub fn set(&self, now: Timestamp) {
            *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }

        /// Advances the clock.
        pub fn advance(&self, by: Duration) {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(later) = now.saturating_add(by) {
                *now = later;
            }
        }
    }

    impl Default for FakeClock {
        fn default() -> Self {
            Self::new(Timestamp::UNIX_EPOCH)
        }
    }

    impl Clock for FakeClock {
        fn now(&self) -> Timestamp {
            *self.now.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn fake_clock_changes_only_when_set() {
        let clock = FakeClock::default();
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        clock.advance(Duration::from_secs(7));
        assert_eq!(clock.now().as_second(), 7);
        clock.set(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now().as_second(), 0);
    }
}
