//! Metrics of the controller and its sets.

use kube_apimachinery::object_key::ObjectKey;
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use statefulset_controller_util::stateful_set::PodManagementPolicy;

#[cfg(feature = "prometheus")]
pub mod prometheus;
mod receivers;

pub use receivers::{ControllerMetrics, QUEUE_NAME};

/// Receives the measurements of sets. By default every method does nothing.
///
/// Upstream: `pkg/controller/statefulset/metrics`.
pub trait SetMetrics: Send + Sync {
    /// Records a sync's pod counts. Called only with the gate `MaxUnavailableStatefulSet`.
    fn counted(
        &self,
        set: &ObjectKey,
        policy: PodManagementPolicy,
        unavailability: Unavailability,
    ) {
        let _ = (set, policy, unavailability);
    }

    /// Records the start of a sync that decides on these caches.
    fn sync_started(&self, set: &ObjectKey, caches: &Caches) {
        let _ = (set, caches);
    }

    /// Removes the metrics of a deleted set.
    fn gone(&self, set: &ObjectKey) {
        let _ = set;
    }

    /// Records a panic of a sync.
    fn sync_panicked(&self) {}

    /// Records a sync that was postponed because this resource's cache is stale.
    fn stale_sync_skipped(&self, resource: TrackedResource) {
        let _ = resource;
    }
}

/// Current and maximum number of unavailable pods of a set during an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// Maximum number of unavailable pods.
    pub max: usize,
    /// Number of unavailable pods; `None` if the sync stopped before it counted them.
    pub current: Option<usize>,
}

/// Discards all measurements.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopSetMetrics;

impl SetMetrics for NoopSetMetrics {}

/// Receives the state of the fence. By default every method does nothing.
pub trait FenceMetrics: Send + Sync {
    /// Reports the number of namespaces with the label, at each change.
    fn namespaces(&self, namespaces: ServedNamespaces) {
        let _ = namespaces;
    }

    /// Counts a namespace that is no longer served: `left`, or the reason of a fallen fence.
    fn fell(&self, reason: &'static str) {
        let _ = reason;
    }

    /// Counts a probe that was denied, as it must be.
    fn probe_denied(&self) {}
}

/// Numbers of the namespaces with the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedNamespaces {
    /// Number of namespaces whose sets are synced.
    pub served: usize,
    /// Number of namespaces whose fence isn't proved.
    pub waiting: usize,
}

/// Discards the state of the fence.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopFenceMetrics;

impl FenceMetrics for NoopFenceMetrics {}

/// A shadow's judgement about one write of the other controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Both controllers decided the same at the same time.
    Equal,
    /// Both decided the same, more than five seconds apart.
    Late,
    /// The other controller tried the same, and the server refused it.
    Refused,
    /// A write of another program, such as a pod deleted by a user.
    Foreign,
    /// The controllers decided differently.
    Different,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 5] = [
        Self::Equal,
        Self::Late,
        Self::Refused,
        Self::Foreign,
        Self::Different,
    ];

    /// The name in metrics and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Late => "late",
            Self::Refused => "refused",
            Self::Foreign => "foreign",
            Self::Different => "different",
        }
    }
}

/// Receives the verdicts of a shadow. By default it does nothing.
pub trait ShadowMetrics: Send + Sync {
    /// Counts a verdict.
    fn judged(&self, verdict: Verdict) {
        let _ = verdict;
    }
}

/// Discards all verdicts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopShadowMetrics;

impl ShadowMetrics for NoopShadowMetrics {}
