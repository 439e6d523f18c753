//! Backoff of an informer after a failure.

use std::time::Duration;

use rand::{RngExt as _, rngs::StdRng};
use tokio::time::Instant;

/// Base of the first delay.
const FIRST: Duration = Duration::from_millis(800);
/// Maximum base; the delay is one to two times its base.
const MAX: Duration = Duration::from_secs(30);
/// Time without a failure that resets the backoff.
const RESET_AFTER: Duration = Duration::from_secs(120);

/// Exponential backoff that adds up to 100% random jitter.
///
/// Upstream: `wait.NewExponentialBackoffManager` as the reflector uses it.
#[derive(Debug)]
pub(super) struct ListBackoff {
    base: Duration,
    last: Option<Instant>,
}

impl Default for ListBackoff {
    fn default() -> Self {
        Self {
            base: FIRST,
            last: None,
        }
    }
}

impl ListBackoff {
    /// Returns the delay after one more failure.
    pub(super) fn next_delay(&mut self, rng: &mut StdRng) -> Duration {
        let now = Instant::now();
        if self
            .last
            .is_some_and(|last| now.duration_since(last) > RESET_AFTER)
        {
            self.base = FIRST;
        }
        self.last = Some(now);
        let delay = self.base.mul_f64(1.0 + rng.random::<f64>());
        self.base = (self.base * 2).min(MAX);
        delay
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_and_reset_after_quiet_time() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = ListBackoff::default();
        for base in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let base = Duration::from_millis(base);
            let delay = backoff.next_delay(&mut rng);
            assert!(base <= delay && delay <= base * 2, "{delay:?} for {base:?}");
        }
        tokio::time::advance(RESET_AFTER + FIRST).await;
        assert!(backoff.next_delay(&mut rng) < FIRST * 2);
    }
}
