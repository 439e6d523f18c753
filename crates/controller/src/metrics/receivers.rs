//! The receivers of a controller's measurements.

use std::sync::Arc;

#[cfg(feature = "prometheus")]
use prometheus::{Error, Registry};
use statefulset_client::cache::informer::{InformerMetricsProvider, NoopInformerMetricsProvider};
#[cfg(feature = "prometheus")]
use statefulset_client::metrics::{InformerFamilies, WorkqueueFamilies};
use statefulset_client::workqueue::{NoopQueueMetrics, QueueMetrics};

#[cfg(feature = "prometheus")]
use super::prometheus::{Options, SetFamilies};
use super::{FenceMetrics, NoopFenceMetrics, NoopSetMetrics, SetMetrics};

/// Receivers of a controller's measurements. The default discards them.
#[derive(Clone)]
#[non_exhaustive]
pub struct ControllerMetrics {
    /// Metrics of the queue, which is named [`QUEUE_NAME`].
    pub queue: Arc<dyn QueueMetrics>,
    /// Metrics of the four caches.
    pub informers: Arc<dyn InformerMetricsProvider>,
    /// Metrics of the sets.
    pub sets: Arc<dyn SetMetrics>,
    /// State of the fence, with a namespace selector.
    pub fence: Arc<dyn FenceMetrics>,
}

/// Name of the controller's queue, as in upstream's metrics.
pub const QUEUE_NAME: &str = "statefulset";

impl Default for ControllerMetrics {
    fn default() -> Self {
        Self {
            queue: Arc::new(NoopQueueMetrics),
            informers: Arc::new(NoopInformerMetricsProvider),
            sets: Arc::new(NoopSetMetrics),
            fence: Arc::new(NoopFenceMetrics),
        }
    }
}

impl ControllerMetrics {
    /// Sends the metrics of the queue to this receiver.
    #[must_use]
    pub fn queue(mut self, metrics: Arc<dyn QueueMetrics>) -> Self {
        self.queue = metrics;
        self
    }

    /// Sends the metrics of the four caches to this receiver.
    #[must_use]
    pub fn informers(mut self, metrics: Arc<dyn InformerMetricsProvider>) -> Self {
        self.informers = metrics;
        self
    }

    /// Sends the state of the fence to this receiver.
    #[must_use]
    pub fn fence(mut self, metrics: Arc<dyn FenceMetrics>) -> Self {
        self.fence = metrics;
        self
    }

    /// Sends the metrics of the sets to this receiver.
    #[must_use]
    pub fn sets(mut self, metrics: Arc<dyn SetMetrics>) -> Self {
        self.sets = metrics;
        self
    }
}

#[cfg(feature = "prometheus")]
impl ControllerMetrics {
    /// Adds the metric families of sets, queue and caches to a registry and returns the metrics.
    ///
    /// # Errors
    ///
    /// The registry already has one of the families, which the error names. If the queues or
    /// informers of other controllers use the same family names, share their families: build this
    /// type from the values that [`WorkqueueFamilies`], [`InformerFamilies`] and [`SetFamilies`]
    /// return.
    ///
    /// # Examples
    ///
    /// ```
    /// use statefulset_controller::metrics::{ControllerMetrics, prometheus::Options};
    ///
    /// let registry = prometheus::Registry::new();
    /// let options = Options::default().program("my-manager");
    /// let metrics = ControllerMetrics::register(&registry, &options)?;
    /// // Passed to `Builder::metrics`.
    /// # drop(metrics);
    /// # Ok::<(), prometheus::Error>(())
    /// ```
    pub fn register(registry: &Registry, options: &Options) -> Result<Self, Error> {
        let queues = WorkqueueFamilies::register(registry)?;
        let informers = InformerFamilies::register(registry, &options.program)?;
        let sets = SetFamilies::register(registry, options.stale_sync_skips)?;
        Ok(Self {
            queue: queues.queue(QUEUE_NAME),
            informers: Arc::new(informers),
            sets: Arc::new(sets),
            fence: Arc::new(NoopFenceMetrics),
        })
    }
}
