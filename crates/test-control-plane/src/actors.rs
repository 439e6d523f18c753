//! What runs in a cluster beside the API server, as far as tests need it.
//!
//! Actors read the store's log and write through the same requests as any client, so that
//! versions, audit log and faults hold for them too.

mod agenda;
mod client;
mod garbage_collector;
mod kubelet;
mod namespaces;
mod runner;
mod scheduler;
mod volume_binder;

pub use garbage_collector::GarbageCollectorConfig;
pub use kubelet::{BehaviourRule, KubeletConfig, Outcome, PodBehaviour, parse_duration};
pub use namespaces::NamespaceControllerConfig;
pub use scheduler::SchedulerConfig;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::server::ApiServer;
use client::ActorClient;
use runner::{Actor, run};

/// How the user agents of actors start.
pub const ACTOR_AGENT_PREFIX: &str = "test-control-plane/";

/// How long an actor waits before it tries again what failed.
const RETRY: Duration = Duration::from_millis(500);

/// Which actors run.
#[derive(Clone, Debug, Default)]
pub struct ActorsConfig {
    /// Runs pods.
    pub kubelet: Option<KubeletConfig>,
    /// Assigns pods to nodes.
    pub scheduler: Option<SchedulerConfig>,
    /// Makes volumes for claims, and keeps claims in use from going away.
    pub volume_binder: bool,
    /// Deletes what has lost its owners.
    pub garbage_collector: Option<GarbageCollectorConfig>,
    /// Empties namespaces that are deleted.
    pub namespace_controller: Option<NamespaceControllerConfig>,
}

impl ActorsConfig {
    /// Every actor, with its defaults.
    pub fn all() -> Self {
        Self {
            kubelet: Some(KubeletConfig::default()),
            scheduler: Some(SchedulerConfig::default()),
            volume_binder: true,
            garbage_collector: Some(GarbageCollectorConfig::default()),
            namespace_controller: Some(NamespaceControllerConfig::default()),
        }
    }
}

/// Starts the actors that are switched on.
pub(crate) async fn start(server: &ApiServer, config: ActorsConfig, tasks: &mut JoinSet<()>) {
    let client = |name: &str| ActorClient::new(server, name);
    let waits_for_claims = config.volume_binder;
    if let Some(scheduler) = config.scheduler {
        let client = client("scheduler");
        scheduler::create_nodes(&client, &scheduler).await;
        let actor = scheduler::Scheduler::new(client, scheduler, waits_for_claims);
        spawn(actor, server, tasks);
    }
    if let Some(kubelet) = config.kubelet {
        let actor = kubelet::Kubelet::new(client("kubelet"), kubelet, waits_for_claims);
        spawn(actor, server, tasks);
    }
    if config.volume_binder {
        let actor = volume_binder::VolumeBinder::new(client("volume-binder"));
        spawn(actor, server, tasks);
    }
    if let Some(config) = config.garbage_collector {
        let client = client("garbage-collector");
        let actor = garbage_collector::GarbageCollector::new(client, config);
        spawn(actor, server, tasks);
    }
    if let Some(config) = config.namespace_controller {
        let client = client("namespace-controller");
        let actor = namespaces::NamespaceController::new(client, config);
        spawn(actor, server, tasks);
    }
}

/// Starts an actor; its orders go into the channel.
fn spawn<A: Actor + 'static>(
    actor: A,
    server: &ApiServer,
    tasks: &mut JoinSet<()>,
) -> mpsc::UnboundedSender<A::Order> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tasks.spawn(run(actor, server.clone(), receiver));
    sender
}
