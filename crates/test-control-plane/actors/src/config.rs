//! Configuration of the actors.

use crate::garbage_collector::GarbageCollectorConfig;
use crate::kubelet::KubeletConfig;
use crate::namespaces::NamespaceControllerConfig;
use crate::node_controller::NodeControllerConfig;
use crate::nodes::NodesConfig;
use crate::pod_collector::PodCollectorConfig;
use crate::scheduler::SchedulerConfig;
use crate::volume_binder::VolumeBinderConfig;

/// Selection and settings of the actors.
#[derive(Clone, Debug, Default)]
pub struct ActorsConfig {
    /// Nodes. They are registered if the kubelet or the scheduler runs.
    pub nodes: NodesConfig,
    /// Makes kubelet and scheduler record events, as in a real cluster. Otherwise only pod changes
    /// cause writes.
    pub events: bool,
    /// Runs pods.
    pub kubelet: Option<KubeletConfig>,
    /// Assigns pods to nodes.
    pub scheduler: Option<SchedulerConfig>,
    /// Taints unresponsive nodes and evicts pods from tainted ones.
    pub node_controller: Option<NodeControllerConfig>,
    /// Deletes pods of missing nodes and surplus terminated pods.
    pub pod_collector: Option<PodCollectorConfig>,
    /// Computes the allowed disruptions of disruption budgets.
    pub disruption_controller: bool,
    /// Binds claims and provisions volumes.
    pub volume_binder: Option<VolumeBinderConfig>,
    /// Deletes objects whose owners are gone.
    pub garbage_collector: Option<GarbageCollectorConfig>,
    /// Empties namespaces that are deleted.
    pub namespace_controller: Option<NamespaceControllerConfig>,
}

impl ActorsConfig {
    /// Reports whether every actor is disabled.
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

    /// Enables every actor with its defaults, without events.
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
