//! Retry delays for operations that hit a write conflict.
//!
//! The retry loops live at the call sites.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// A bounded number of attempts with growing delays between them.
///
/// Upstream: `wait.Backoff` as `retry.OnError` uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Maximum number of attempts; there is one delay fewer.
    pub tries: u32,
    /// The first delay.
    pub first: Duration,
    /// Factor by which each delay grows.
    pub factor: f64,
    /// Maximum share of a delay that is added at random.
    pub jitter: f64,
}

/// For conflicts with writers that write often. Upstream: `retry.DefaultRetry`.
pub const DEFAULT_RETRY: Backoff = Backoff {
    tries: 5,
    first: Duration::from_millis(10),
    factor: 1.0,
    jitter: 0.1,
};

/// For conflicts with other controllers. Upstream: `retry.DefaultBackoff`.
pub const DEFAULT_BACKOFF: Backoff = Backoff {
    tries: 4,
    first: Duration::from_millis(10),
    factor: 5.0,
    jitter: 0.1,
};

impl Backoff {
    /// Returns the delays in order, one fewer than the attempts. When they run out, the caller
    /// returns the last error.
    pub fn delays<'a>(&self, source: &'a dyn Jitter) -> impl Iterator<Item = Duration> + use<'a> {
        let Self {
            tries,
            first,
            factor,
            jitter,
        } = *self;
        let mut base = first;
        (1..tries).map(move |_| {
            let delay = base + base.mul_f64(jitter * source.fraction());
            base = base.mul_f64(factor);
            delay
        })
    }
}

/// Waits for the next delay; returns false if none is left.
pub async fn wait(delays: &mut impl Iterator<Item = Duration>) -> bool {
    let Some(delay) = delays.next() else {
        return false;
    };
    tokio::time::sleep(delay).await;
    true
}

/// A source of randomness for delays.
pub trait Jitter: Send + Sync {
    /// Returns a number in `0.0..1.0`.
    fn fraction(&self) -> f64;
}

/// Pseudo-random jitter from a seed.
#[derive(Debug)]
pub struct SeededJitter(Mutex<StdRng>);

impl SeededJitter {
    /// Creates the jitter source for a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Jitter for SeededJitter {
    fn fraction(&self) -> f64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .random()
    }
}

/// Jitter that is always zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJitter;

impl Jitter for NoJitter {
    fn fraction(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(backoff: Backoff) -> Vec<u128> {
        backoff
            .delays(&NoJitter)
            .map(|delay| delay.as_millis())
            .collect()
    }

    #[test]
    fn delays_are_one_fewer_than_attempts() {
        assert_eq!(millis(DEFAULT_RETRY), [10, 10, 10, 10]);
        assert_eq!(millis(DEFAULT_BACKOFF), [10, 50, 250]);
    }

    #[test]
    fn jitter_adds_at_most_its_share() {
        let jitter = SeededJitter::new(1);
        for delay in DEFAULT_RETRY.delays(&jitter) {
            assert!(delay >= Duration::from_millis(10) && delay < Duration::from_millis(11));
        }
    }

    #[test]
    fn equal_seeds_give_equal_delays() {
        let delays = |seed| {
            DEFAULT_BACKOFF
                .delays(&SeededJitter::new(seed))
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
    }

    #[tokio::test(start_paused = true)]
    async fn wait_ends_with_the_delays() {
        let start = tokio::time::Instant::now();
        let mut delays = DEFAULT_BACKOFF.delays(&NoJitter);
        for elapsed in [10, 60, 310] {
            assert!(wait(&mut delays).await);
            assert_eq!(start.elapsed(), Duration::from_millis(elapsed));
        }
        assert!(!wait(&mut delays).await);
        assert_eq!(start.elapsed(), Duration::from_millis(310));
    }
}
