//! What runs in a cluster beside the API server, as far as tests need it.
//!
//! Actors read the store's log and write through the same requests as any client, so that
//! versions, audit log and faults hold for them too. For a real API server they are clients like
//! others: they list and watch, and send their requests over its port. Their timers are tokio's: in paused time a
//! test of an hour takes milliseconds, and the same seed gives the same history.
//!
//! | actor | what it does |
//! |---|---|
//! | kubelet | runs pods on every node: start, readiness, crashes, restarts, stopping |
//! | scheduler | assigns pods to nodes, or says in `PodScheduled` why they fit nowhere |
//! | node controller | gives up silent nodes, taints them, drives pods away from taints |
//! | pod garbage collector | deletes by force the pods of nodes that are gone |
//! | disruption controller | counts what disruption budgets allow to evict |
//! | volume binder | binds claims, makes volumes, releases them |
//! | volume protection | lets deleted claims and volumes go once nobody uses them |
//! | garbage collector | deletes what has lost its owners |
//! | namespace controller | empties namespaces that are deleted |
//!
//! With [`ActorsConfig::events`] kubelet and scheduler also write events, with the reasons, messages
//! and reporters of the real ones: `Scheduled`, `FailedScheduling`, `Pulling`, `Pulled`, `Created`,
//! `Started`, `Killing`, `BackOff`, `Failed`, `Unhealthy`, `Evicted` and others.
//!
//! Volume protection runs beside volume binder, garbage collector and namespace controller, which
//! would wait for it in vain.
//! Without the volume binder neither scheduler nor kubelet waits for claims.
//!
//! # How pods behave
//!
//! A [`PodBehaviour`] describes a pod's life in stages. It comes from, the first that says
//! anything: [`Pods::behave`], annotations on the pod (one by one), rules that
//! [`Pods::add_rule`] has added, the newest first, the closure [`KubeletConfig::rule`], the first
//! rule of [`KubeletConfig::rules`] whose [`PodMatcher`] fits, [`KubeletConfig::default`]. A [`Delay`] is a time such as `2s` or a range such as `1s..3s`.
//!
//! The annotations start with `kubelet.test-control-plane/`; their values are YAML.
//!
//! | annotation | value | what it sets |
//! |---|---|---|
//! | `start-delay` | delay | from the assignment to the start of the containers |
//! | `init-delay` | delay | how long each init container runs |
//! | `ready-delay` | delay | from running to ready, or to the end |
//! | `outcome` | `ready`, `never-ready`, `never-starts`, `fails`, `succeeds` | what becomes of it |
//! | `cause` | `exited`, `evicted`, `node-shutdown`, `preempted`, `node-ports` | why it fails or succeeds |
//! | `image-pull-failure` | `{times: 3, image: "*:bad", message: no}` | `ErrImagePull`, `ImagePullBackOff` |
//! | `crash` | `{after: 5s, times: 3, exitCode: 1, signal: 9, reason: OOMKilled, container: c}` | crashes, `CrashLoopBackOff` |
//! | `flap` | `{readyFor: 10s, unreadyFor: 5s, times: 2}` | readiness that comes and goes |
//! | `readiness` | `[{ready: 5s}, {unready: 2s}, {ready: 0s}]` | the same as a script; the last step lasts |
//! | `pre-stop-delay`, `stop-delay` | delay | how long stopping takes; killed at the end of the grace period |
//! | `stop` | `obeys`, `ignores-sigterm`, `hangs` | what the containers do when told to stop |
//! | `stop-exit-code` | number | the exit code of containers that stop |
//!
//! Members of `{…}` that are left out have their defaults, so `{}` crashes at once and for ever.
//! The first restart comes at once; then the back-off is 10 s, doubling to 5 min
//! ([`BackOff`]). A pod annotated `scheduler.test-control-plane/hold` fits nowhere until the
//! annotation is gone or says `false`. Claims take
//! `volume-binder.test-control-plane/provision-delay` (a delay) and
//! `volume-binder.test-control-plane/failures` (how many tries to make the volume fail).
//!
//! A status is written when something happens to the pod and not otherwise, so a test may set a
//! condition itself. On a running plane [`Pods`] and [`Nodes`] make pods crash, end, be held or
//! evicted, and nodes be lost, tainted, cordoned or deleted.

mod affinity;
mod agenda;
mod client;
mod control;
mod delay;
mod disruption_controller;
mod events;
mod garbage_collector;
mod incarnations;
mod invariants;
mod kubelet;
mod matcher;
#[cfg(feature = "client")]
mod mirror;
mod namespaces;
mod node_controller;
mod nodes;
mod pod_collector;
mod pods;
mod runner;
mod scheduler;
mod server;
mod taints;
mod volume_binder;
mod volume_protection;

pub use control::{ActionError, Leases, Nodes, Pods};
pub use delay::{Delay, ParseDelayError, parse_duration};
pub use garbage_collector::GarbageCollectorConfig;
pub use invariants::{Invariants, Violation};
pub use kubelet::{
    BackOff, BehaviourRule, Cause, Crash, Flap, ImagePullFailure, KubeletConfig, Outcome,
    PodBehaviour, PodRule, PodRuleId, ReadinessStep, RunningPod, Stop,
};
pub use matcher::{Pattern, PodMatcher};
pub use namespaces::NamespaceControllerConfig;
pub use node_controller::NodeControllerConfig;
#[cfg(feature = "client")]
pub(crate) use nodes::OS_IMAGE;
pub use nodes::{NodeConfig, NodeTaint, NodesConfig};
pub use pod_collector::PodCollectorConfig;
pub use scheduler::SchedulerConfig;
pub use volume_binder::{BindingMode, ClaimRule, ReclaimPolicy, VolumeBinderConfig, VolumeClass};

use std::time::Duration;

use tokio::task::JoinSet;

use client::ActorClient;
pub(crate) use control::Handles;
use events::Recorder;
#[cfg(feature = "client")]
pub(crate) use mirror::{Mirror, Namespaces, Scope};
use runner::spawn;
pub(crate) use server::ActorServer;

/// How the user agents of actors start.
pub const ACTOR_AGENT_PREFIX: &str = "test-control-plane/";

/// How long an actor waits before it tries again what failed.
const RETRY: Duration = Duration::from_millis(500);

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

/// Starts the actors that are switched on.
pub(crate) async fn start(
    server: &ActorServer,
    config: ActorsConfig,
    tasks: &mut JoinSet<()>,
) -> Handles {
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
        let actor = volume_protection::VolumeProtection::new(client("volume-protection"));
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
