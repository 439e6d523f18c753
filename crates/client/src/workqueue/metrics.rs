//! Metrics of a work queue.

use std::time::Duration;

/// The processing time of the keys that workers currently process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The sum over all keys.
    pub total: Duration,
    /// The longest processing time.
    pub longest: Duration,
}

/// Receives a queue's metrics. Every method does nothing by default.
///
/// The queue's depth as upstream counts it is the number of `added` minus that of `got`.
/// Upstream: `workqueue.MetricsProvider`.
pub trait QueueMetrics: Send + Sync {
    /// A key was queued, or will be after its current worker is done.
    fn added(&self) {}

    /// A worker got a key that had waited this long.
    fn got(&self, waited: Duration) {
        let _ = waited;
    }

    /// A worker finished a key after this time.
    fn done(&self, worked: Duration) {
        let _ = worked;
    }

    /// A delayed or rate-limited add, even with a delay of zero.
    fn retried(&self) {}

    /// Returns the interval between calls of [`QueueMetrics::unfinished`]; none for never.
    fn refresh_period(&self) -> Option<Duration> {
        None
    }

    /// Reports the processing time of the keys that workers currently process.
    fn unfinished(&self, unfinished: Unfinished) {
        let _ = unfinished;
    }
}

/// Discards metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopQueueMetrics;

impl QueueMetrics for NoopQueueMetrics {}
