//! The wall clock as a seam, and clocks that only go forwards.

use jiff::Timestamp;

#[cfg(any(test, feature = "testing"))]
pub use fake::FakeClock;
pub use monotonic::{BootClock, MonotonicClock, TokioClock};

mod monotonic;

/// Tells the time of day. Durations use tokio's clock instead, deadlines that other machines count
/// on a [`MonotonicClock`].
///
/// Upstream: `clock.PassiveClock`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that the seam stands for"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[cfg(any(test, feature = "testing"))]
mod fake {
    //! A clock that stands still until it is moved.

    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use jiff::Timestamp;

    use super::Clock;

    /// A clock that stands still until it is moved.
    #[derive(Debug)]
    pub struct FakeClock {
        now: Mutex<Timestamp>,
    }

    impl FakeClock {
        /// A clock that shows this moment.
        pub fn new(now: Timestamp) -> Self {
            Self {
                now: Mutex::new(now),
            }
        }

        /// Sets the clock, forwards or backwards.
        pub fn set(&self, now: Timestamp) {
            *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }

        /// Moves the clock forwards.
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
    fn a_fake_clock_stands_still_until_it_is_moved() {
        let clock = FakeClock::default();
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        clock.advance(Duration::from_secs(7));
        assert_eq!(clock.now().as_second(), 7);
        clock.set(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now().as_second(), 0);
    }
}
