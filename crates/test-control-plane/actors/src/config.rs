//! The choice of actors.

use crate::garbage_collector::GarbageCollectorConfig;
use crate::kubelet::KubeletConfig;
use crate::namespaces::NamespaceControllerConfig;
use crate::node_controller::NodeControllerConfig;
use crate::nodes::NodesConfig;
use crate::pod_collector::PodCollectorConfig;
use crate::scheduler::SchedulerConfig;
use crate::volume_binder::VolumeBinderConfig;

/// Which actors run.
#[derive(Clone, Debug, Default)]
pub struct ActorsConfig {
    /// The nodes, which are registered if pods are run or scheduled.
    pub nodes: NodesConfig,
    /// Whether kubelet and scheduler write events, as a cluster's do. Without them the only writes
    /// are those that change pods.
    pub events: bool,
    /// Runs pods.
    pub kubelet: Option<KubeletConfig>,
    /// Assigns pods to nodes.
    pub scheduler: Option<SchedulerConfig>,
    /// Gives up silent nodes, and drives pods away from tainted ones.
    pub node_controller: Option<NodeControllerConfig>,
    /// Deletes pods that nobody else will.
    pub pod_collector: Option<PodCollectorConfig>,
    /// Counts how many pods disruption budgets allow to evict.
    pub disruption_controller: bool,
    /// Binds claims and makes volumes for them.
    pub volume_binder: Option<VolumeBinderConfig>,
    /// Deletes what has lost its owners.
    pub garbage_collector: Option<GarbageCollectorConfig>,
    /// Empties namespaces that are deleted.
    pub namespace_controller: Option<NamespaceControllerConfig>,
}

impl ActorsConfig {
    /// Whether none runs.
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

    /// Every actor, with its defaults; without events.
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
