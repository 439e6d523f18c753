//! The choice of actors, and their start.

use std::collections::BTreeSet;

use kube_test_control_plane_api::setters;
use tokio::task::JoinSet;

use crate::client::ActorClient;
use crate::control::Handles;
use crate::controllers::Controller;
#[cfg(feature = "cel")]
use crate::controllers::policy_status::PolicyStatusController;
use crate::disruption_controller::DisruptionController;
use crate::events::Recorder;
use crate::garbage_collector::{GarbageCollector, GarbageCollectorConfig};
use crate::kubelet::{Kubelet, KubeletConfig, NodeKubelets};
use crate::namespaces::{NamespaceController, NamespaceControllerConfig};
use crate::node_controller::{NodeController, NodeControllerConfig};
use crate::nodes::{NodesConfig, create_nodes};
use crate::pod_collector::{PodCollector, PodCollectorConfig};
use crate::runner::spawn;
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::server::ActorServer;
use crate::volume_binder::ephemeral::EphemeralVolumes;
use crate::volume_binder::protection::VolumeProtection;
use crate::volume_binder::{VolumeBinder, VolumeBinderConfig};

/// The enabled actors and their settings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
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
    /// Warns about the types in the expressions of validating policies. Runs on the embedded server
    /// with the crate feature `cel`, without which there are no policies; a real server's policies
    /// are checked by its controller manager.
    pub policy_status_controller: bool,
    /// The workload controllers.
    pub controllers: BTreeSet<Controller>,
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
            policy_status_controller,
            controllers,
            volume_binder,
            garbage_collector,
            namespace_controller,
        } = self;
        kubelet.is_none()
            && scheduler.is_none()
            && node_controller.is_none()
            && pod_collector.is_none()
            && !disruption_controller
            && !policy_status_controller
            && controllers.is_empty()
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
            policy_status_controller: true,
            controllers: Controller::ALL.into(),
            volume_binder: Some(VolumeBinderConfig::default()),
            garbage_collector: Some(GarbageCollectorConfig::default()),
            namespace_controller: Some(NamespaceControllerConfig::default()),
        }
    }

    setters! {
        /// Sets the nodes to register if pods are run or scheduled.
        nodes: NodesConfig,
        /// Enables the events of kubelet and scheduler.
        events: bool,
        /// Sets or disables the kubelet, which runs pods.
        kubelet: into Option<KubeletConfig>,
        /// Sets or disables the scheduler, which assigns pods to nodes.
        scheduler: into Option<SchedulerConfig>,
        /// Sets or disables the node controller.
        node_controller: into Option<NodeControllerConfig>,
        /// Sets or disables the pod garbage collector.
        pod_collector: into Option<PodCollectorConfig>,
        /// Enables the disruption controller.
        disruption_controller: bool,
        /// Enables the warnings about validating policies.
        policy_status_controller: bool,
        /// Sets the workload controllers.
        controllers: each Controller,
        /// Sets or disables the volume binder.
        volume_binder: into Option<VolumeBinderConfig>,
        /// Sets or disables the garbage collector.
        garbage_collector: into Option<GarbageCollectorConfig>,
        /// Sets or disables the namespace controller.
        namespace_controller: into Option<NamespaceControllerConfig>,
    }
}

/// Starts the enabled actors.
pub async fn start(server: &ActorServer, config: ActorsConfig, tasks: &mut JoinSet<()>) -> Handles {
    let client = |name: &str| ActorClient::new(server, name);
    let mut handles = Handles::default();
    let seed = server.seed();
    let volumes = config.volume_binder;
    if config.kubelet.is_some() || config.scheduler.is_some() {
        create_nodes(&client("kubelet"), &config.nodes).await;
    }
    let recorder = |name: &str| config.events.then(|| Recorder::new(client(name)));
    if let Some(config) = config.scheduler {
        let (client, events) = (client("scheduler"), recorder("scheduler"));
        let actor = Scheduler::new(client, config, volumes.clone(), events, seed);
        handles.scheduler = Some(spawn("scheduler", actor, server, tasks));
    }
    if let Some(config) = config.kubelet {
        let waits_for_claims = volumes.is_some();
        let (client, events) = (client("kubelet"), recorder("kubelet"));
        let invariants = handles.invariants.clone();
        let actor = Kubelet::new(client, config, waits_for_claims, invariants, events, seed);
        let orders = spawn("kubelet", actor, server, tasks);
        server.serve_containers(NodeKubelets(orders.clone()));
        handles.kubelet = Some(orders);
    }
    if let Some(config) = config.node_controller {
        let actor = NodeController::new(client("node-controller"), config);
        handles.node_controller = Some(spawn("node controller", actor, server, tasks));
    }
    if let Some(config) = config.pod_collector {
        let client = client("pod-garbage-collector");
        let actor = PodCollector::new(client, config);
        spawn("pod garbage collector", actor, server, tasks);
    }
    if config.disruption_controller {
        let client = client("disruption-controller");
        let actor = DisruptionController::new(client);
        spawn("disruption controller", actor, server, tasks);
    }
    #[cfg(feature = "cel")]
    if config.policy_status_controller
        && let Some(embedded) = server.embedded()
    {
        let name = "validatingadmissionpolicy-status-controller";
        let actor = PolicyStatusController::new(embedded, name);
        spawn("policy status controller", actor, server, tasks);
    }
    for controller in config.controllers {
        controller.start(client(controller.name()), server, tasks);
    }
    if volumes.is_some()
        || config.garbage_collector.is_some()
        || config.namespace_controller.is_some()
    {
        let actor = VolumeProtection::new(client("volume-protection"));
        spawn("volume protection", actor, server, tasks);
    }
    if let Some(config) = volumes {
        let actor = EphemeralVolumes::new(client("ephemeral-volume-controller"));
        spawn("ephemeral volume controller", actor, server, tasks);
        let actor = VolumeBinder::new(client("volume-binder"), config, seed);
        spawn("volume binder", actor, server, tasks);
    }
    if let Some(config) = config.garbage_collector {
        let client = client("garbage-collector");
        let actor = GarbageCollector::new(client, config);
        spawn("garbage collector", actor, server, tasks);
    }
    if let Some(config) = config.namespace_controller {
        let client = client("namespace-controller");
        let actor = NamespaceController::new(client, config);
        spawn("namespace controller", actor, server, tasks);
    }
    handles
}
