//! Time limit for the start of a response.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body as _;
use kube::client::Body;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::rest::metrics::{ClientMetrics, is_watch};

/// The response did not start in time. The server may or may not have applied the request.
#[derive(Debug, thiserror::Error)]
#[error("no response from the API server within {} s", .after.as_secs())]
pub struct ResponseTimeout {
    /// The time limit.
    pub after: Duration,
}

/// Aborts requests whose response does not start in time, and counts every attempt. It is inside
/// the retry and rate limit layers, so that only the server's time counts.
#[derive(Clone)]
pub struct TimeoutLayer {
    after: Duration,
    metrics: Arc<dyn ClientMetrics>,
}

impl TimeoutLayer {
    /// Creates a layer with this time limit.
    pub fn new(after: Duration, metrics: Arc<dyn ClientMetrics>) -> Self {
        Self { after, metrics }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Timeout {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service of a [`TimeoutLayer`].
#[derive(Clone)]
pub struct Timeout<S> {
    inner: S,
    layer: TimeoutLayer,
}

impl<S, B> Service<Request<Body>> for Timeout<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self {
            inner,
            layer: TimeoutLayer { after, metrics },
        } = self.clone();
        Box::pin(async move {
            let method = request.method().clone();
            if !is_watch(request.uri()) {
                metrics.sent(&method, request.body().size_hint().lower());
            }
            let result = match tokio::time::timeout(after, inner.oneshot(request)).await {
                Ok(result) => result,
                Err(_) => Err(BoxError::from(ResponseTimeout { after })),
            };
            let code = result
                .as_ref()
                .ok()
                .map(|response| response.status().as_u16());
            metrics.requested(&method, code);
            result
        })
    }
}
