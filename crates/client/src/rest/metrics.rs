//! The measurements of a client's requests.

use std::time::Duration;

use http::{Method, Uri};

pub use layer::{RequestMetrics, RequestMetricsLayer};

mod layer;

/// Takes the measurements of one client's requests. Every method does nothing unless implemented.
///
/// Called on the way of every request, so an implementation must be quick and must not block.
/// Upstream: `rest_client_*` in `component-base/metrics/prometheus/restclient`.
pub trait ClientMetrics: Send + Sync {
    /// A request was sent, once, and answered with this code, or failed without an answer (no
    /// code). The only call that is made for watches.
    fn requested(&self, method: &Method, code: Option<u16>) {
        let _ = (method, code);
    }

    /// A request was sent, once, with a body of so many bytes.
    fn sent(&self, method: &Method, bytes: u64) {
        let _ = (method, bytes);
    }

    /// A request has to wait this long for the rate limit; often zero.
    fn rate_limited(&self, method: &Method, wait: Duration) {
        let _ = (method, wait);
    }

    /// A request was sent again, and answered with this code or failed without an answer.
    fn retried(&self, method: &Method, code: Option<u16>) {
        let _ = (method, code);
    }

    /// A request is over, with all its waits and re-sends: so many bytes of the answer's body were
    /// read, or there was no answer (none).
    fn finished(&self, method: &Method, elapsed: Duration, received: Option<u64>) {
        let _ = (method, elapsed, received);
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
