//! Limits on how often something is done.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

use crate::metrics::{ClientMetrics, is_watch};

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

/// Makes requests wait for a token each, in the order in which they come. Watches do not wait.
///
/// Upstream: `flowcontrol.NewTokenBucketRateLimiter`, `Request.tryThrottle`.
#[derive(Clone)]
pub struct RateLimitLayer {
    bucket: Arc<Mutex<TokenBucket>>,
    start: Instant,
    metrics: Arc<dyn ClientMetrics>,
}

impl RateLimitLayer {
    /// A limit of `qps` requests a second on average and `burst` at once. Services made by clones
    /// of this layer share the bucket.
    pub fn new(qps: f64, burst: u32, metrics: Arc<dyn ClientMetrics>) -> Self {
        let bucket = Arc::new(Mutex::new(TokenBucket::new(qps, burst)));
        Self {
            bucket,
            start: Instant::now(),
            metrics,
        }
    }

    fn reserve(&self) -> Duration {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.reserve(self.start.elapsed())
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit {
            inner,
            limit: self.clone(),
        }
    }
}

/// The service that [`RateLimitLayer`] makes.
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    limit: RateLimitLayer,
}

impl<S, B> Service<Request<B>> for RateLimit<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = self.inner.clone();
        if is_watch(request.uri()) {
            return Box::pin(inner.oneshot(request));
        }
        let wait = self.limit.reserve();
        self.limit.metrics.rate_limited(request.method(), wait);
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            inner.oneshot(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::NoopClientMetrics;

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

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_their_tokens_and_watches_do_not() {
        let inner = tower::service_fn(|_: Request<()>| async { Ok::<_, ()>(Instant::now()) });
        let layer = RateLimitLayer::new(1.0, 1, Arc::new(NoopClientMetrics));
        let service = layer.layer(inner);
        let start = Instant::now();
        let send = async |uri: &'static str| {
            let request = Request::builder().uri(uri).body(()).unwrap();
            (service.clone().oneshot(request).await.unwrap() - start).as_secs()
        };
        assert_eq!(send("/api/v1/pods").await, 0);
        assert_eq!(send("/api/v1/pods").await, 1);
        assert_eq!(send("/api/v1/pods?watch=true").await, 1);
        assert_eq!(send("/api/v1/pods").await, 2);
    }
}
