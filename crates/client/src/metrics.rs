//! What a process can count about its requests.

use std::time::Duration;

use http::{Method, Uri};

/// Takes the measurements of the request layers. Every method does nothing unless implemented.
///
/// Upstream: `rest_client_*` in `component-base/metrics/prometheus/restclient`.
pub trait ClientMetrics: Send + Sync {
    /// A request was sent and answered, or failed without an answer (no code). `elapsed` runs
    /// until the head of the answer.
    fn requested(&self, method: &Method, code: Option<u16>, elapsed: Duration) {
        let _ = (method, code, elapsed);
    }

    /// A request has to wait this long for the rate limit; often zero.
    fn rate_limited(&self, method: &Method, wait: Duration) {
        let _ = (method, wait);
    }

    /// A request is sent again after this answer (none: the connection was lost).
    fn retried(&self, method: &Method, code: Option<u16>) {
        let _ = (method, code);
    }

    /// A request body and the body of an answer had these sizes, in bytes.
    fn transferred(&self, method: &Method, request_bytes: u64, response_bytes: Option<u64>) {
        let _ = (method, request_bytes, response_bytes);
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopClientMetrics;

impl ClientMetrics for NoopClientMetrics {}

/// True for a request that opens a watch.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"))
    })
}
