//! Measurements of a work queue.

use std::time::Duration;

use super::Unfinished;

/// Takes the measurements of a queue. Every method does nothing unless implemented.
///
/// The depth of the queue, as upstream counts it, is the number of `added` less that of `got`.
/// Upstream: `workqueue.MetricsProvider`.
pub trait QueueMetrics: Send + Sync {
    /// A key waits that did not before, or is to come again after the worker that has it.
    fn added(&self) {}

    /// A worker took a key that had waited this long.
    fn got(&self, waited: Duration) {
        let _ = waited;
    }

    /// A worker was through with a key after this time.
    fn done(&self, worked: Duration) {
        let _ = worked;
    }

    /// A delayed or rate-limited add, also one without delay.
    fn retried(&self) {}

    /// How often to tell [`QueueMetrics::unfinished`]; none for never.
    fn refresh_period(&self) -> Option<Duration> {
        None
    }

    /// How long the keys that workers have at this moment are being worked on.
    fn unfinished(&self, unfinished: Unfinished) {
        let _ = unfinished;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopQueueMetrics;

impl QueueMetrics for NoopQueueMetrics {}
