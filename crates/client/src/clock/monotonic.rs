//! Clocks that only go forwards, for deadlines.

use std::time::Duration;

use tokio::time::Instant;

/// Tells how much time has passed since a moment that stays the same as long as the process lives.
/// Never goes back, whatever becomes of the time of day.
pub trait MonotonicClock: Send + Sync {
    /// The time since that moment.
    fn elapsed(&self) -> Duration;
}

/// The machine's time since its start, in which the time that the machine itself slept counts:
/// what others did meanwhile counts too. Where the system has no such clock, sleep is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl MonotonicClock for BootClock {
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        // Neither part is ever negative.
        Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
    }
}

/// Tokio's clock, which tests can pause. The time that the machine slept does not count.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// A clock that begins now.
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
    fn the_boot_clock_runs_and_only_forwards() {
        let before = BootClock.elapsed();
        assert!(before > Duration::ZERO);
        assert!((0..1000).all(|_| BootClock.elapsed() >= before));
    }

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_follows_paused_time() {
        let clock = TokioClock::new();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(3));
    }
}
