//! Sends requests again that the server has not processed.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::not_processed::is_not_processed;
use crate::rest::call::AtOnce;

/// Waits before the resends of one request. The first is immediate, because a server that shuts down
/// gracefully, or balances its connections, accepts the request on a new connection.
///
/// Upstream: `http2.Transport.RoundTripOpt`.
const WAITS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// Sends a request again if the server has not processed it, with any method. It is outside the
/// fence, which checks each attempt, and inside the time limit, which covers all of them.
///
/// Passes on the error of a request of [`RestClient::at_once`](super::RestClient::at_once): its
/// caller must first repeat the read that the request depends on.
#[derive(Debug, Clone, Copy)]
pub struct ResendLayer;

impl<S> Layer<S> for ResendLayer {
    type Service = Resend<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Resend { inner }
    }
}

/// The service of a [`ResendLayer`].
#[derive(Clone)]
pub struct Resend<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for Resend<S>
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
        let Self { inner } = self.clone();
        if request.extensions().get::<AtOnce>().is_some() {
            return Box::pin(inner.oneshot(request));
        }
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            // Request bodies are in memory, so this takes no time.
            let body = body.collect().await?.to_bytes();
            let mut waits = WAITS.into_iter();
            loop {
                let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
                let result = inner.clone().oneshot(request).await;
                let is_final = |err: &BoxError| !is_not_processed(err.as_ref());
                if result.as_ref().map_or_else(is_final, |_| true) {
                    return result;
                }
                let Some(wait) = waits.next() else {
                    return result;
                };
                tracing::debug!(method = %parts.method, uri = %parts.uri, "not processed, sending again");
                tokio::time::sleep(wait).await;
            }
        })
    }
}

#[cfg(test)]
mod tests;
