//! Metrics of a client's requests.

use std::time::Duration;

use http::{Method, Uri};

pub use layer::{RequestMetrics, RequestMetricsLayer};

mod layer;

/// Receives the metrics of one client's requests. Every method does nothing by default.
///
/// Called for every request, so an implementation must be quick and must not block.
/// Upstream: `rest_client_*` in `component-base/metrics/prometheus/restclient`.
pub trait ClientMetrics: Send + Sync {
    /// One attempt to send a request ended with this code, or without a response (no code). The
    /// only method called for watches.
    fn requested(&self, method: &Method, code: Option<u16>) {
        let _ = (method, code);
    }

    /// One attempt sent a request with a body of this many bytes.
    fn sent(&self, method: &Method, bytes: u64) {
        let _ = (method, bytes);
    }

    /// A request must wait this long for the rate limit; often zero.
    fn rate_limited(&self, method: &Method, wait: Duration) {
        let _ = (method, wait);
    }

    /// A retry ended with this code or without a response.
    fn retried(&self, method: &Method, code: Option<u16>) {
        let _ = (method, code);
    }

    /// A request has ended, including waits and retries. `received` is the number of bytes read of
    /// the response's body, or none without a response.
    fn finished(&self, method: &Method, elapsed: Duration, received: Option<u64>) {
        let _ = (method, elapsed, received);
    }
}

/// Discards metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopClientMetrics;

impl ClientMetrics for NoopClientMetrics {}

/// Returns true for a request that opens a watch.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"))
    })
}
