//! Simulated actors: what a test configures, and what it asks of them.

pub use kube_test_control_plane_actors::{
    ActionError, ActorsConfig, BackOff, BehaviourRule, BindingMode, Cause, ClaimRule,
    CommandHandler, ContainerHandlers, ContainerName, Controller, Crash, Delay, Flap,
    GarbageCollectorConfig, ImagePullFailure, Invariants, KubeletConfig, Leases, LogLine,
    NamespaceControllerConfig, NodeConfig, NodeControllerConfig, NodeTaint, Nodes, NodesConfig,
    Outcome, ParsePodRulesError, Pattern, PodBehaviour, PodCollectorConfig, PodMatcher, PodRule,
    PodRuleId, Pods, PortHandler, PortServer, Program, ReadinessStep, ReclaimPolicy, Resize,
    RunningPod, SchedulerConfig, ScriptedCommand, ScriptedPort, Stdio, Stop, TerminalSize,
    Violation, VolumeBinderConfig, VolumeClass, port_server, program,
};
