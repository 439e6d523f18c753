//! A token bucket, for rate limits of requests, events and log lines.

use std::time::Duration;

/// A bucket that fills with tokens at a steady rate.
///
/// Time is a duration since any fixed moment, so that it works with every clock.
/// Upstream: `rate.Limiter`.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    tokens_per_second: f64,
    burst: f64,
    /// Negative if tokens are reserved in advance.
    tokens: f64,
    filled_at: Duration,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens that gains `tokens_per_second` (more than 0).
    pub fn new(tokens_per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self {
            tokens_per_second,
            burst,
            tokens: burst,
            filled_at: Duration::ZERO,
        }
    }

    /// Reserves a token. Returns the wait until it is available; the token is consumed even if the
    /// caller doesn't wait.
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

    /// Takes a token if one is available.
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
    fn bucket_allows_burst_then_steady_rate() {
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
    fn bucket_holds_at_most_its_burst() {
        let mut bucket = TokenBucket::new(1.0, 2);
        assert!(bucket.try_accept(seconds(1000)));
        assert!(bucket.try_accept(seconds(1000)));
        assert!(!bucket.try_accept(seconds(1000)));
        assert!(bucket.try_accept(seconds(1001)));
    }

    #[test]
    fn clock_going_back_adds_no_tokens() {
        let mut bucket = TokenBucket::new(1.0, 1);
        assert!(bucket.try_accept(seconds(10)));
        assert!(!bucket.try_accept(seconds(3)));
        assert!(bucket.try_accept(seconds(4)));
    }
}
