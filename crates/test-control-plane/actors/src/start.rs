//! Start of the actors.

use tokio::task::JoinSet;

use crate::client::ActorClient;
use crate::config::ActorsConfig;
use crate::control::Handles;
use crate::events::Recorder;
use crate::runner::spawn;
use crate::server::ActorServer;
use crate::{
    disruption_controller, garbage_collector, kubelet, namespaces, node_controller, nodes,
    pod_collector, scheduler, volume_binder,
};

/// Starts the enabled actors.
pub async fn start(server: &ActorServer, config: ActorsConfig, tasks: &mut JoinSet<()>) -> Handles {
    let client = |name: &str| ActorClient::new(server, name);
    let mut handles = Handles::default();
    let seed = server.seed();
    let volumes = config.volume_binder;
    if config.kubelet.is_some() || config.scheduler.is_some() {
        nodes::create_nodes(&client("kubelet"), &config.nodes).await;
    }
    let recorder = |name: &str| config.events.then(|| Recorder::new(client(name)));
    if let Some(config) = config.scheduler {
        let (client, events) = (client("scheduler"), recorder("scheduler"));
        let actor = scheduler::Scheduler::new(client, config, volumes.clone(), events, seed);
        handles.scheduler = Some(spawn("scheduler", actor, server, tasks));
    }
    if let Some(config) = config.kubelet {
        let waits_for_claims = volumes.is_some();
        let (client, events) = (client("kubelet"), recorder("kubelet"));
        let mut actor = kubelet::Kubelet::new(client, config, waits_for_claims, events, seed);
        actor.invariants = handles.invariants.clone();
        handles.kubelet = Some(spawn("kubelet", actor, server, tasks));
    }
    if let Some(config) = config.node_controller {
        let actor = node_controller::NodeController::new(client("node-controller"), config);
        handles.node_controller = Some(spawn("node controller", actor, server, tasks));
    }
    if let Some(config) = config.pod_collector {
        let client = client("pod-garbage-collector");
        let actor = pod_collector::PodCollector::new(client, config);
        spawn("pod garbage collector", actor, server, tasks);
    }
    if config.disruption_controller {
        let client = client("disruption-controller");
        let actor = disruption_controller::DisruptionController::new(client);
        spawn("disruption controller", actor, server, tasks);
    }
    if volumes.is_some()
        || config.garbage_collector.is_some()
        || config.namespace_controller.is_some()
    {
        let actor = volume_binder::protection::VolumeProtection::new(client("volume-protection"));
        spawn("volume protection", actor, server, tasks);
    }
    if let Some(config) = volumes {
        let actor = volume_binder::VolumeBinder::new(client("volume-binder"), config, seed);
        spawn("volume binder", actor, server, tasks);
    }
    if let Some(config) = config.garbage_collector {
        let client = client("garbage-collector");
        let actor = garbage_collector::GarbageCollector::new(client, config);
        spawn("garbage collector", actor, server, tasks);
    }
    if let Some(config) = config.namespace_controller {
        let client = client("namespace-controller");
        let actor = namespaces::NamespaceController::new(client, config);
        spawn("namespace controller", actor, server, tasks);
    }
    handles
}
