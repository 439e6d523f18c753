//! Retries requests below the callers, and only when the server sends a wait time.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::causes::causes;
use crate::error::Error;
use crate::rest::call::AtOnce;
use crate::rest::metrics::ClientMetrics;

/// Maximum number of retries.
pub const RESENDS_MAX: u32 = 10;

/// Limit of a write's waits together, after which its caller decides again.
const WAITS_MAX: Duration = Duration::from_secs(30);

/// Wait before a GET is retried after a lost connection.
const LOST_CONNECTION_WAIT: Duration = Duration::from_secs(1);

/// Retries a request if the response is 429 or a server error with `Retry-After`, or if a GET lost
/// its connection. A write with a lost connection is never retried: it may have been applied. Nor
/// is a request of [`RestClient::at_once`](super::RestClient::at_once), whose caller uses
/// [`Resends`].
///
/// Upstream: `withRetry` of client-go's `rest` package.
#[derive(Clone)]
pub struct RetryLayer {
    metrics: Arc<dyn ClientMetrics>,
}

impl RetryLayer {
    /// Creates a layer that reports its retries.
    pub fn new(metrics: Arc<dyn ClientMetrics>) -> Self {
        Self { metrics }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry {
            inner,
            metrics: Arc::clone(&self.metrics),
        }
    }
}

/// The service of a [`RetryLayer`].
#[derive(Clone)]
pub struct Retry<S> {
    inner: S,
    metrics: Arc<dyn ClientMetrics>,
}

impl<S, B> Service<Request<Body>> for Retry<S>
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
        let Self { inner, metrics } = self.clone();
        if request.extensions().get::<AtOnce>().is_some() {
            return Box::pin(inner.oneshot(request));
        }
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            // Request bodies are in memory, so this takes no time.
            let body = body.collect().await?.to_bytes();
            let mut resends = 0;
            loop {
                let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
                let result = inner.clone().oneshot(request).await;
                let code = result
                    .as_ref()
                    .ok()
                    .map(|response| response.status().as_u16());
                if resends > 0 {
                    metrics.retried(&parts.method, code);
                }
                let Some(wait) = wait_before_resend(&parts.method, &result) else {
                    return result;
                };
                if resends == RESENDS_MAX {
                    return result;
                }
                resends += 1;
                // Drop the unread response, because it would hold its connection during the wait.
                drop(result);
                tracing::debug!(method = %parts.method, uri = %parts.uri, code, resends, "resending");
                tokio::time::sleep(wait).await;
            }
        })
    }
}

/// Returns the wait before a retry, or none if the result is final.
fn wait_before_resend<B>(
    method: &Method,
    result: &Result<Response<B>, BoxError>,
) -> Option<Duration> {
    match result {
        Ok(response) => {
            let code = response.status().as_u16();
            if code != 429 && code < 500 {
                return None;
            }
            retry_after(response.headers())
        }
        Err(err) if method == Method::GET && lost_connection(err.as_ref()) => {
            Some(LOST_CONNECTION_WAIT)
        }
        Err(_) => None,
    }
}

/// Returns the wait that a response asks for, in whole seconds; a negative one counts as 0.
///
/// Upstream: `retryAfterSeconds`.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: i64 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds.try_into().unwrap_or(0)))
}

/// The resends of a write that depends on a read, by its caller: the read comes before each of them.
#[derive(Debug, Default)]
pub struct Resends {
    made: u32,
    waited: Duration,
}

impl Resends {
    /// Returns true, after the wait that the server asks for, if it has not executed the write, and
    /// neither the limit of [`RESENDS_MAX`] nor that of 30 s for all waits is reached.
    pub async fn allows<T>(&mut self, result: &Result<T, Error>) -> bool {
        let Some(wait) = result.as_ref().err().and_then(Error::resend_after) else {
            return false;
        };
        let waited = self.waited.saturating_add(wait);
        if self.made == RESENDS_MAX || waited > WAITS_MAX {
            return false;
        }
        self.made += 1;
        self.waited = waited;
        tokio::time::sleep(wait).await;
        true
    }
}

/// Returns true if the connection was reset or closed before the response ended.
///
/// Upstream: `net.IsConnectionReset`, `net.IsProbableEOF`, `net.IsHTTP2ConnectionLost`.
fn lost_connection(err: &(dyn StdError + 'static)) -> bool {
    causes(err).any(|cause| {
        if let Some(err) = cause.downcast_ref::<std::io::Error>() {
            return matches!(
                err.kind(),
                ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
            );
        }
        if let Some(err) = cause.downcast_ref::<hyper::Error>() {
            return err.is_incomplete_message()
                || err.is_canceled()
                || err.is_closed()
                || err.is_timeout();
        }
        cause.downcast_ref::<h2::Error>().is_some_and(|err| {
            let refused = err.reason() == Some(h2::Reason::REFUSED_STREAM);
            err.is_io() || err.is_go_away() || refused
        })
    })
}

#[cfg(test)]
mod tests;
