//! What a process can count about the controller and its sets.

use std::sync::Arc;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::informer::{InformerMetricsProvider, NoopInformerMetricsProvider};
use statefulset_client::workqueue::{NoopQueueMetrics, QueueMetrics};
use statefulset_controller_util::consistency::{StaleCache, TrackedResource};
use statefulset_controller_util::stateful_set::PodManagementPolicy;

#[cfg(feature = "prometheus")]
pub mod prometheus;

/// Takes the measurements of a controller. By default nothing is counted.
#[derive(Clone)]
pub struct ControllerMetrics {
    /// Those of the queue, whose name is [`QUEUE_NAME`].
    pub queue: Arc<dyn QueueMetrics>,
    /// Those of the four caches.
    pub informers: Arc<dyn InformerMetricsProvider>,
    /// Those of the sets.
    pub sets: Arc<dyn SetMetrics>,
}

/// The name of the controller's queue, as upstream's metrics have it.
pub const QUEUE_NAME: &str = "statefulset";

impl Default for ControllerMetrics {
    fn default() -> Self {
        Self {
            queue: Arc::new(NoopQueueMetrics),
            informers: Arc::new(NoopInformerMetricsProvider),
            sets: Arc::new(NoopSetMetrics),
        }
    }
}

/// Takes the measurements of sets. Every method does nothing unless implemented.
///
/// Upstream: `pkg/controller/statefulset/metrics`.
pub trait SetMetrics: Send + Sync {
    /// What a sync counted of a set. Told with the gate `MaxUnavailableStatefulSet` alone.
    fn counted(
        &self,
        set: &ObjectKey,
        policy: PodManagementPolicy,
        unavailability: Unavailability,
    ) {
        let _ = (set, policy, unavailability);
    }

    /// A set is gone: nothing is to be kept of it.
    fn gone(&self, set: &ObjectKey) {
        let _ = set;
    }

    /// A sync panicked.
    fn sync_panicked(&self) {}

    /// A sync was put off because the cache of this resource is behind.
    fn stale_sync_skipped(&self, resource: TrackedResource) {
        let _ = resource;
    }
}

/// How many pods of a set are unavailable during an update, and how many may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// How many may be.
    pub max: usize,
    /// How many are; none if the sync didn't come so far as to count them.
    pub current: Option<usize>,
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopSetMetrics;

impl SetMetrics for NoopSetMetrics {}

/// Whose cache is behind.
pub(crate) fn stale_resource(stale: &StaleCache) -> TrackedResource {
    match stale {
        StaleCache::Older { resource, .. } => *resource,
        StaleCache::PodDeleted { .. } => TrackedResource::Pods,
    }
}
