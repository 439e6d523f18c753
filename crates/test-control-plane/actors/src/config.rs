//! The choice of actors.

use crate::garbage_collector::GarbageCollectorConfig;
use crate::kubelet::KubeletConfig;
use crate::namespaces::NamespaceControllerConfig;
use crate::node_controller::NodeControllerConfig;
use crate::nodes::NodesConfig;
use crate::pod_collector::PodCollectorConfig;
use crate::scheduler::SchedulerConfig;
use crate::volume_binder::VolumeBinderConfig;

/// The enabled actors and their settings.
#[derive(Clone, Debug, Default)]
pub struct ActorsConfig {
    /// The nodes to register if pods are run or scheduled.
    pub nodes: NodesConfig,
    /// Kubelet and scheduler write events, as in a real cluster. Without events, the actors write
    /// only pod changes.
    pub events: bool,
    /// Runs pods.
    pub kubelet: Option<KubeletConfig>,
    /// Assigns pods to nodes.
    pub scheduler: Option<SchedulerConfig>,
    /// Taints silent nodes, and evicts pods from tainted nodes.
    pub node_controller: Option<NodeControllerConfig>,
    /// Deletes orphaned, unscheduled terminating and old finished pods.
    pub pod_collector: Option<PodCollectorConfig>,
    /// Counts the evictions that each disruption budget allows.
    pub disruption_controller: bool,
    /// Binds claims and provisions volumes for them.
    pub volume_binder: Option<VolumeBinderConfig>,
    /// Deletes objects without a living owner.
    pub garbage_collector: Option<GarbageCollectorConfig>,
    /// Empties terminating namespaces.
    pub namespace_controller: Option<NamespaceControllerConfig>,
}

impl ActorsConfig {
    /// Reports whether no actor is enabled.
    pub fn is_empty(&self) -> bool {
        let Self {
            nodes: _,
            events: _,
            kubelet,
            scheduler,
            node_controller,
            pod_collector,
            disruption_controller,
            volume_binder,
            garbage_collector,
            namespace_controller,
        } = self;
        kubelet.is_none()
            && scheduler.is_none()
            && node_controller.is_none()
            && pod_collector.is_none()
            && !disruption_controller
            && volume_binder.is_none()
            && garbage_collector.is_none()
            && namespace_controller.is_none()
    }

    /// Enables every actor with its defaults, but no events.
    pub fn all() -> Self {
        Self {
            nodes: NodesConfig::default(),
            events: false,
            kubelet: Some(KubeletConfig::default()),
            scheduler: Some(SchedulerConfig::default()),
            node_controller: Some(NodeControllerConfig::default()),
            pod_collector: Some(PodCollectorConfig::default()),
            disruption_controller: true,
            volume_binder: Some(VolumeBinderConfig::default()),
            garbage_collector: Some(GarbageCollectorConfig::default()),
            namespace_controller: Some(NamespaceControllerConfig::default()),
        }
    }
}
