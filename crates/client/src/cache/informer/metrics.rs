//! Measurements of an informer and its cache.

use std::sync::Arc;
use std::time::Duration;

use crate::resource::Resource;

/// Takes the measurements of one informer. Every method does nothing unless implemented.
///
/// Upstream: `cache.InformerMetricsProvider`.
pub trait InformerMetrics: Send + Sync {
    /// An event, or a list as a whole, was brought into the cache and to the handlers within this
    /// time.
    fn processed(&self, elapsed: Duration) {
        let _ = elapsed;
    }

    /// The server was heard: the cache is as new as what it said. Called for each list, opened watch,
    /// event and bookmark.
    fn in_step(&self) {}

    /// So many objects can't be decoded at present.
    fn set_aside(&self, objects: usize) {
        let _ = objects;
    }

    /// The cache now has this version, a decimal number as a rule.
    fn store_version(&self, version: &str) {
        let _ = version;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopInformerMetrics;

impl InformerMetrics for NoopInformerMetrics {}

/// Gives each informer its metrics.
pub trait InformerMetricsProvider: Send + Sync {
    /// Those of the informer of this resource.
    fn informer(&self, resource: &Resource) -> Arc<dyn InformerMetrics>;
}

/// Counts nothing of any informer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopInformerMetricsProvider;

impl InformerMetricsProvider for NoopInformerMetricsProvider {
    fn informer(&self, _resource: &Resource) -> Arc<dyn InformerMetrics> {
        Arc::new(NoopInformerMetrics)
    }
}
