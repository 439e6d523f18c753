//! A token bucket, with which requests, events and log lines are limited.

use std::time::Duration;

/// A bucket that fills with tokens at a steady rate.
///
/// Its time is a duration since any fixed moment, so that it works with every clock.
/// Upstream: `rate.Limiter`.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    tokens_per_second: f64,
    burst: f64,
    /// May be negative: tokens that have been promised.
    tokens: f64,
    filled_at: Duration,
}

impl TokenBucket {
    /// A full bucket that holds `burst` tokens and gains `tokens_per_second` (more than 0).
    pub fn new(tokens_per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self {
            tokens_per_second,
            burst,
            tokens: burst,
            filled_at: Duration::ZERO,
        }
    }

    /// Takes a token, at once or as soon as there is one. Returns how long that takes; the token is
    /// taken whether the caller waits or not.
    pub fn reserve(&mut self, now: Duration) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            Duration::ZERO
        } else {
            Duration::try_from_secs_f64(-self.tokens / self.tokens_per_second)
                .unwrap_or(Duration::MAX)
        }
    }

    /// Takes a token if there is one.
    pub fn try_accept(&mut self, now: Duration) -> bool {
        self.fill(now);
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }

    fn fill(&mut self, now: Duration) {
        let gained = now.saturating_sub(self.filled_at).as_secs_f64() * self.tokens_per_second;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.filled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let mut bucket = TokenBucket::new(10.0, 2);
        let now = seconds(5);
        let waits: Vec<_> = (0..4).map(|_| bucket.reserve(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100, 200]);
        assert_eq!(
            bucket.reserve(now + Duration::from_millis(300)).as_millis(),
            0
        );
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut bucket = TokenBucket::new(1.0, 2);
        assert!(bucket.try_accept(seconds(1000)));
        assert!(bucket.try_accept(seconds(1000)));
        assert!(!bucket.try_accept(seconds(1000)));
        assert!(bucket.try_accept(seconds(1001)));
    }

    #[test]
    fn a_clock_that_goes_back_gives_no_tokens() {
        let mut bucket = TokenBucket::new(1.0, 1);
        assert!(bucket.try_accept(seconds(10)));
        assert!(!bucket.try_accept(seconds(3)));
        assert!(bucket.try_accept(seconds(4)));
    }
}
