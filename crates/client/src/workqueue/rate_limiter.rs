//! Delays of failed keys.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::token_bucket::TokenBucket;

/// The delay after the first failure of a key.
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest delay of a key.
const DELAY_MAX: Duration = Duration::from_secs(1000);
/// Failures of all keys together that pass without a wait, on average a second.
const SHARED_PER_SECOND: f64 = 10.0;
/// The same, at once.
const SHARED_BURST: u32 = 100;

/// Gives each failure a delay: the longer of one that doubles with every failure of the key, and
/// one that keeps all keys together to a steady rate.
///
/// Upstream: `workqueue.DefaultTypedControllerRateLimiter`.
#[derive(Debug)]
pub struct RateLimiter<K> {
    failures: BTreeMap<K, u32>,
    bucket: TokenBucket,
    start: Instant,
}

impl<K: Clone + Ord> Default for RateLimiter<K> {
    fn default() -> Self {
        let bucket = TokenBucket::new(SHARED_PER_SECOND, SHARED_BURST);
        Self {
            failures: BTreeMap::new(),
            bucket,
            start: Instant::now(),
        }
    }
}

impl<K: Clone + Ord> RateLimiter<K> {
    /// The delay for one more failure of a key. The shared bucket gives a token for it even if the
    /// delay of the key is the longer one.
    pub fn when(&mut self, key: &K, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let own = key_delay(*failures);
        *failures = failures.saturating_add(1);
        own.max(
            self.bucket
                .reserve(now.saturating_duration_since(self.start)),
        )
    }

    /// Forgets the failures of a key.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often a key has failed.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

fn key_delay(failures: u32) -> Duration {
    let factor = 2_u32.checked_pow(failures);
    let delay = factor.and_then(|factor| FIRST_DELAY.checked_mul(factor));
    delay.map_or(DELAY_MAX, |delay| delay.min(DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_of_a_key_doubles_up_to_its_cap() {
        let mut limiter = RateLimiter::default();
        let now = Instant::now();
        let delays: Vec<_> = (0..20)
            .map(|_| limiter.when(&"a", now).as_millis())
            .collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[17..], [655_360, 1_000_000, 1_000_000]);
        assert_eq!(limiter.num_requeues(&"a"), 20);
        limiter.forget(&"a");
        assert_eq!(limiter.num_requeues(&"a"), 0);
        assert_eq!(limiter.when(&"a", now).as_millis(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn all_keys_share_a_bucket_of_a_hundred() {
        let mut limiter = RateLimiter::default();
        let now = Instant::now();
        let delays: Vec<_> = (0..102)
            .map(|key| limiter.when(&key, now).as_millis())
            .collect();
        assert_eq!(delays[99..], [5, 100, 200]);
    }
}
