//! Monotonic clocks, for deadlines.

use std::time::Duration;

use tokio::time::Instant;

/// Measures the time since a fixed moment of the process. Never goes back, even if the wall clock
/// does.
pub trait MonotonicClock: Send + Sync {
    /// Returns the time since that moment.
    fn elapsed(&self) -> Duration;
}

/// The time since boot, including suspend: other machines keep running while this one sleeps.
/// Systems without such a clock exclude suspend, and those that aren't Unix count from the first call.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl MonotonicClock for BootClock {
    #[cfg(unix)]
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        // Neither part is negative.
        Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
    }

    #[cfg(not(unix))]
    fn elapsed(&self) -> Duration {
        use std::sync::LazyLock;
        /// The first call.
        static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}

/// Tokio's clock, which tests can pause. Excludes suspend.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// Creates a clock that starts at zero.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl MonotonicClock for TokioClock {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_clock_never_goes_back() {
        let before = BootClock.elapsed();
        assert!(before > Duration::ZERO);
        assert!((0..1000).all(|_| BootClock.elapsed() >= before));
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_paused_time() {
        let clock = TokioClock::new();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(3));
    }
}
