//! Simulated actors of a cluster: kubelet, scheduler, collectors and controllers.
#![doc = include_str!("../README.md")]

mod client;
mod control;
mod controllers;
mod dependents;
mod deployment_controller;
mod disruption_controller;
mod endpoint_slice_controller;
mod events;
mod garbage_collector;
mod job_controller;
mod kubelet;
mod matcher;
#[cfg(feature = "client")]
mod mirror;
mod namespaces;
mod node_controller;
mod nodes;
mod pod_collector;
mod pods;
mod replica_set_controller;
mod runner;
mod scheduler;
mod seeded_rng;
mod server;
mod start;
mod volume_binder;

pub use control::{ActionError, Handles, Leases, Nodes, Pods};
pub use controllers::Controller;
pub use garbage_collector::GarbageCollectorConfig;
pub use kube_apimachinery::go_duration::parse as parse_duration;
pub use kube_test_control_plane_server::containers::{Stdio, TerminalSize};
pub use kube_test_control_plane_server::faults::ACTOR_AGENT_PREFIX;
pub use kube_test_control_plane_server::faults::{Delay, ParseDelayError};
pub use kubelet::{
    BackOff, BehaviourRule, Cause, CommandHandler, ContainerName, Crash, Flap,
    Handlers as ContainerHandlers, ImagePullFailure, Invariants, KubeletConfig, LogLine, Outcome,
    ParsePodRulesError, PodBehaviour, PodRule, PodRuleId, PortHandler, PortServer, Program,
    ReadinessStep, Resize, RunningPod, ScriptedCommand, ScriptedPort, Stop, Violation, port_server,
    program,
};
pub use matcher::{Pattern, PodMatcher};
#[cfg(feature = "client")]
pub use mirror::{Mirror, Namespaces, Scope};
pub use namespaces::NamespaceControllerConfig;
pub use node_controller::NodeControllerConfig;
pub use nodes::{NodeConfig, NodeTaint, NodesConfig, OS_IMAGE};
pub use pod_collector::PodCollectorConfig;
pub use scheduler::SchedulerConfig;
pub use server::ActorServer;
pub use start::{ActorsConfig, start};
pub use volume_binder::{BindingMode, ClaimRule, ReclaimPolicy, VolumeBinderConfig, VolumeClass};
