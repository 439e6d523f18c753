//! Delays of failed keys.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::token_bucket::TokenBucket;

/// The delay after a key's first failure.
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// Maximum delay of a key.
const DELAY_MAX: Duration = Duration::from_secs(1000);
/// Rate of all keys' failures together without a wait, per second.
const SHARED_PER_SECOND: f64 = 10.0;
/// Burst of all keys' failures together without a wait.
const SHARED_BURST: u32 = 100;

/// Returns a delay for each failure: the longer of a key's exponential backoff and the delay of a
/// token bucket shared by all keys.
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
    /// Returns the delay after one more failure of a key. It takes a token from the shared bucket
    /// even if the key's own delay is longer.
    pub fn when(&mut self, key: &K, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.start);
        self.own_delay(key, DELAY_MAX)
            .max(self.bucket.reserve(elapsed))
    }

    /// Returns a key's own delay after one more failure, at most `delay_max`, without a token of the
    /// shared bucket. A failure at the maximum doesn't count: the next one with a higher maximum
    /// continues from here.
    pub fn own_delay(&mut self, key: &K, delay_max: Duration) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let delay = key_delay(*failures);
        if delay < delay_max || delay_max >= DELAY_MAX {
            *failures = failures.saturating_add(1);
        }
        delay.min(delay_max)
    }

    /// Resets a key's failures.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Returns the number of a key's failures.
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
    async fn key_delay_doubles_up_to_maximum() {
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
    async fn keys_share_one_bucket() {
        let mut limiter = RateLimiter::default();
        let now = Instant::now();
        let delays: Vec<_> = (0..102)
            .map(|key| limiter.when(&key, now).as_millis())
            .collect();
        assert_eq!(delays[99..], [5, 100, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn own_delays_leave_the_shared_bucket_to_other_keys() {
        let mut limiter = RateLimiter::default();
        for key in 0..1000 {
            assert_eq!(limiter.own_delay(&key, DELAY_MAX).as_millis(), 5);
        }
        assert_eq!(limiter.when(&1000, Instant::now()).as_millis(), 5);
        assert_eq!(limiter.when(&0, Instant::now()).as_millis(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_at_their_maximum_delay_no_later_failure() {
        let mut limiter = RateLimiter::default();
        let delay_max = Duration::from_secs(1);
        let waits: Vec<_> = (0..60)
            .map(|_| limiter.own_delay(&"a", delay_max).as_millis())
            .collect();
        assert_eq!(waits[6..10], [320, 640, 1000, 1000]);
        assert_eq!(limiter.when(&"a", Instant::now()).as_millis(), 1280);
    }
}
