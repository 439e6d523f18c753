//! Measures requests as a whole, from the call until the response is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

use super::{ClientMetrics, is_watch};

/// Measures the duration of requests, including waits and retries, and the size of responses. It
/// must be the outermost layer. Watches are not measured.
#[derive(Clone)]
pub struct RequestMetricsLayer {
    metrics: Arc<dyn ClientMetrics>,
}

impl RequestMetricsLayer {
    /// Creates a layer that reports to `metrics`.
    pub fn new(metrics: Arc<dyn ClientMetrics>) -> Self {
        Self { metrics }
    }
}

impl<S> Layer<S> for RequestMetricsLayer {
    type Service = RequestMetrics<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RequestMetrics {
            inner,
            metrics: Arc::clone(&self.metrics),
        }
    }
}

/// The service of a [`RequestMetricsLayer`].
#[derive(Clone)]
pub struct RequestMetrics<S> {
    inner: S,
    metrics: Arc<dyn ClientMetrics>,
}

impl<S, B, C> Service<Request<B>> for RequestMetrics<S>
where
    S: Service<Request<B>, Response = Response<C>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
    C: Send + 'static,
{
    type Response = Response<MeasuredBody<C>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = self.inner.clone();
        let mut measured = Measured((!is_watch(request.uri())).then(|| Running {
            metrics: Arc::clone(&self.metrics),
            method: request.method().clone(),
            start: Instant::now(),
            received: None,
        }));
        Box::pin(async move {
            let response = inner.oneshot(request).await?;
            measured.received(0);
            Ok(response.map(|inner| MeasuredBody { inner, measured }))
        })
    }
}

/// A response's body; its end is the end of the request.
pub struct MeasuredBody<B> {
    inner: B,
    measured: Measured,
}

impl<B> Body for MeasuredBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.measured.received(bytes);
            }
            Some(Err(_)) | None => this.measured.end(),
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}

/// A request in progress; none if it has ended or isn't measured.
struct Measured(Option<Running>);

struct Running {
    metrics: Arc<dyn ClientMetrics>,
    method: Method,
    start: Instant,
    /// Bytes of the response so far; none before it starts.
    received: Option<u64>,
}

impl Measured {
    fn received(&mut self, bytes: usize) {
        if let Some(running) = &mut self.0 {
            *running.received.get_or_insert(0) += bytes as u64;
        }
    }

    /// Ends the request. Also called on drop: the caller may give up or stop reading the response.
    fn end(&mut self) {
        if let Some(running) = self.0.take() {
            let elapsed = running.start.elapsed();
            let Running {
                metrics,
                method,
                received,
                ..
            } = running;
            metrics.finished(&method, elapsed, received);
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.end();
    }
}
