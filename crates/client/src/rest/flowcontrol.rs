//! The rate limit of a client's requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

use super::call::AtOnce;
use super::metrics::{ClientMetrics, is_watch};
use crate::token_bucket::TokenBucket;

/// Makes each request wait for a token, in order of arrival. Watches don't wait. Requests of
/// [`RestClient::at_once`](super::RestClient::at_once) take their token in advance.
///
/// Upstream: `flowcontrol.NewTokenBucketRateLimiter`, `Request.tryThrottle`.
#[derive(Clone)]
pub struct RateLimitLayer {
    bucket: Arc<Mutex<TokenBucket>>,
    start: Instant,
    metrics: Arc<dyn ClientMetrics>,
}

impl RateLimitLayer {
    /// Limits requests to `qps` per second on average, with bursts of `burst`. The services of this
    /// layer's clones share one bucket.
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

/// The service of a [`RateLimitLayer`].
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
        let reserved = self.limit.reserve();
        let is_at_once = request.extensions().get::<AtOnce>().is_some();
        let wait = if is_at_once { Duration::ZERO } else { reserved };
        self.limit.metrics.rate_limited(request.method(), wait);
        Box::pin(async move {
            // Even a sleep of no time waits for the next tick of the timer, a millisecond.
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            inner.oneshot(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::metrics::NoopClientMetrics;

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_tokens_but_watches_do_not() {
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

    #[tokio::test(start_paused = true)]
    async fn requests_sent_at_once_delay_later_ones() {
        let inner = tower::service_fn(|_: Request<()>| async { Ok::<_, ()>(Instant::now()) });
        let service = RateLimitLayer::new(1.0, 1, Arc::new(NoopClientMetrics)).layer(inner);
        let start = Instant::now();
        let mut at_once = Request::new(());
        at_once.extensions_mut().insert(AtOnce);
        let mut seconds = Vec::new();
        for request in [at_once.clone(), at_once, Request::new(())] {
            let sent = service.clone().oneshot(request).await.unwrap();
            seconds.push((sent - start).as_secs());
        }
        assert_eq!(seconds, [0, 0, 2]);
    }
}
