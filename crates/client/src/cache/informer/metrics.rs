//! Metrics of an informer and its cache.

use std::sync::Arc;
use std::time::Duration;

use crate::resource::Resource;

/// Receives the metrics of one informer. Every method does nothing by default.
///
/// Upstream: `cache.InformerMetricsProvider`.
pub trait InformerMetrics: Send + Sync {
    /// An event or a whole list was applied to the cache and the handlers in this time.
    fn processed(&self, elapsed: Duration) {
        let _ = elapsed;
    }

    /// The server sent data, so the cache is up to date. Called for each list, opened watch, event
    /// and bookmark.
    fn in_step(&self) {}

    /// The current number of objects that can't be decoded.
    fn set_aside(&self, objects: usize) {
        let _ = objects;
    }

    /// The cache now has this version, usually a decimal number.
    fn store_version(&self, version: &str) {
        let _ = version;
    }
}

/// Discards metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopInformerMetrics;

impl InformerMetrics for NoopInformerMetrics {}

/// Creates the metrics of informers.
pub trait InformerMetricsProvider: Send + Sync {
    /// Returns the metrics of this resource's informer.
    fn informer(&self, resource: &Resource) -> Arc<dyn InformerMetrics>;
}

/// Discards the metrics of every informer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopInformerMetricsProvider;

impl InformerMetricsProvider for NoopInformerMetricsProvider {
    fn informer(&self, _resource: &Resource) -> Arc<dyn InformerMetrics> {
        Arc::new(NoopInformerMetrics)
    }
}
