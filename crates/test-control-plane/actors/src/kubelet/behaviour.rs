//! Pod behaviour as data: a default, rules, and a closure of the test.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::script::{LogLine, ScriptedCommand, ScriptedPort};
use crate::matcher::{Pattern, PodMatcher};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_server::faults::Delay;

/// Outcome of a running pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It becomes ready.
    #[default]
    Ready,
    /// It runs and never becomes ready.
    NeverReady,
    /// It stays pending: its containers are created forever.
    NeverStarts,
    /// It runs, then ends in the phase Failed.
    Fails,
    /// It runs, then ends in the phase Succeeded.
    Succeeds,
}

/// Cause of a pod's end in phase Failed or Succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// Its containers exited.
    #[default]
    Exited,
    /// The node ran short of memory.
    Evicted,
    /// The node shuts down.
    NodeShutdown,
    /// A critical pod needed the room.
    Preempted,
    /// It ran for longer than its `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// Another pod has a port of the node that it needs: it never ran.
    NodePorts,
}

impl Cause {
    /// Returns the reason and message of the pod's status, if any.
    pub(super) fn explanation(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Exited => None,
            Self::Evicted => Some((
                "Evicted",
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: \
                 50Mi. ",
            )),
            Self::NodeShutdown => Some((
                "Terminated",
                "Pod was terminated in response to imminent node shutdown.",
            )),
            Self::Preempted => Some(("Preempting", "Preempted in order to admit critical pod")),
            Self::DeadlineExceeded => Some((
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )),
            Self::NodePorts => Some((
                "NodePorts",
                "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for \
                 the requested pod ports",
            )),
        }
    }

    /// Reports whether the node disrupted the pod.
    pub(super) fn is_disruption(self) -> bool {
        matches!(self, Self::Evicted | Self::NodeShutdown | Self::Preempted)
    }

    pub(super) fn exit_code(self) -> i32 {
        match self {
            Self::Exited | Self::NodePorts => 1,
            Self::NodeShutdown => 143,
            Self::Evicted | Self::Preempted | Self::DeadlineExceeded => 137,
        }
    }
}

/// Reaction of a pod's containers to SIGTERM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stop {
    /// They stop after the stop delay, and are killed if that is longer than the grace period.
    #[default]
    Obeys,
    /// They keep running until they are killed at the end of the grace period.
    IgnoresSigterm,
    /// They can't be killed: the pod stays Terminating.
    Hangs,
}

/// Reaction of a node to a resize of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Resize {
    /// It carries the resize out after the resize delay.
    #[default]
    Applies,
    /// It has no room yet.
    Deferred,
    /// It can't ever carry the resize out.
    Infeasible,
}

/// A container's crashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Crash {
    /// Time from the container's start to its crash.
    pub after: Delay,
    /// Number of crashes; unlimited if `None`.
    pub times: Option<u32>,
    /// The exit code; 137 for `OOMKilled` and 128 + n for a signal unless set.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The reported reason, such as `OOMKilled`.
    pub reason: String,
    /// Name of the container, which may be an init container; the first main container if `None`.
    pub container: Option<String>,
}

impl Default for Crash {
    fn default() -> Self {
        Self {
            after: Delay::ZERO,
            times: None,
            exit_code: None,
            signal: None,
            reason: "Error".to_owned(),
            container: None,
        }
    }
}

impl Crash {
    setters! {
        /// Sets the time from the container's start to its crash.
        after: into Delay,
        /// Sets the number of crashes.
        times: into Option<u32>,
        /// Sets the exit code.
        exit_code: into Option<i32>,
        /// Sets the signal that ended the container.
        signal: into Option<i32>,
        /// Sets the reported reason, such as `OOMKilled`.
        reason: into String,
        /// Sets the name of the container.
        container: into String,
    }
}

/// Failing image pulls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ImagePullFailure {
    /// Number of failing pulls; all of them if `None`.
    pub times: Option<u32>,
    /// The affected images; if `None`, those in the pod at its creation, so that a new image works.
    pub image: Option<Pattern>,
    /// The registry's error; if `None`, that the image is unknown.
    pub message: Option<String>,
}

impl ImagePullFailure {
    setters! {
        /// Sets the number of failing pulls.
        times: into Option<u32>,
        /// Sets the affected images.
        image: into Pattern,
        /// Sets the registry's error.
        message: into String,
    }
}

/// Alternating readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Flap {
    /// Duration of each ready phase.
    pub ready_for: Delay,
    /// Duration of each unready phase.
    pub unready_for: Delay,
    /// Number of times the pod becomes unready; unlimited if `None`.
    pub times: Option<u32>,
}

impl Flap {
    setters! {
        /// Sets the duration of each ready phase.
        ready_for: into Delay,
        /// Sets the duration of each unready phase.
        unready_for: into Delay,
        /// Sets the number of times the pod becomes unready.
        times: into Option<u32>,
    }
}

/// A step of a readiness script and its duration. The last step never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReadinessStep {
    /// The pod is ready.
    Ready(Delay),
    /// The pod is not ready.
    Unready(Delay),
}

/// Behaviour of a pod in each stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PodBehaviour {
    /// Time from the binding to a node to the start of the containers.
    pub start_delay: Delay,
    /// Run time of each init container.
    pub init_delay: Delay,
    /// Time from running to ready, or to the end.
    pub ready_delay: Delay,
    /// Outcome of the pod.
    pub outcome: Outcome,
    /// Cause of the pod's end, if it ends.
    pub cause: Cause,
    /// Image pull failures.
    pub image_pull_failure: Option<ImagePullFailure>,
    /// Container crashes.
    pub crash: Option<Crash>,
    /// Alternating readiness.
    pub flap: Option<Flap>,
    /// Script of the pod's readiness, from the time it would become ready; wins over `flap`.
    /// Crashes don't stop it, but a restarted container takes part only when it would be ready
    /// again.
    pub readiness: Vec<ReadinessStep>,
    /// Duration of the preStop hook.
    pub pre_stop_delay: Delay,
    /// Time from SIGTERM to the exit of the containers.
    pub stop_delay: Delay,
    /// Reaction of the containers to SIGTERM.
    pub stop: Stop,
    /// Lines that its containers log. Without any, a container logs the output of its own shell
    /// command, and a main container ends with it if the outcome is `Ready`. They apply from the
    /// container's next start.
    pub log: Vec<LogLine>,
    /// Results of commands that clients execute; the first that matches wins. Without one, a shell
    /// with a few programs responds.
    pub commands: Vec<ScriptedCommand>,
    /// Programs that serve ports. Other ports of the containers' specs echo.
    pub ports: Vec<ScriptedPort>,
    /// Files of the images, by absolute path: every container finds them when it starts.
    pub files: BTreeMap<String, String>,
    /// Exit code of containers that obey SIGTERM.
    pub stop_exit_code: i32,
    /// Reaction to a resize.
    pub resize: Resize,
    /// Time that a resize takes.
    pub resize_delay: Delay,
}

impl PodBehaviour {
    /// Pods that take this time each to start, to become ready and to stop.
    pub fn with_delays(delay: impl Into<Delay>) -> Self {
        let delay = delay.into();
        Self {
            start_delay: delay,
            ready_delay: delay,
            stop_delay: delay,
            ..Self::default()
        }
    }

    setters! {
        /// Sets the time from the binding to a node to the start of the containers.
        start_delay: into Delay,
        /// Sets the run time of each init container.
        init_delay: into Delay,
        /// Sets the time from running to ready, or to the end.
        ready_delay: into Delay,
        /// Sets the outcome of the pod.
        outcome: Outcome,
        /// Sets the cause of the pod's end.
        cause: Cause,
        /// Lets image pulls fail.
        image_pull_failure: into Option<ImagePullFailure>,
        /// Lets a container crash.
        crash: into Option<Crash>,
        /// Lets the pod's readiness alternate.
        flap: into Option<Flap>,
        /// Sets the script of the pod's readiness.
        readiness: each ReadinessStep,
        /// Sets the duration of the preStop hook.
        pre_stop_delay: into Delay,
        /// Sets the time from SIGTERM to the exit of the containers.
        stop_delay: into Delay,
        /// Sets the reaction of the containers to SIGTERM.
        stop: Stop,
        /// Sets the lines that the containers log.
        log: each LogLine,
        /// Sets the results of commands that clients execute.
        commands: each ScriptedCommand,
        /// Sets the programs that serve ports.
        ports: each ScriptedPort,
        /// Sets the files of the images, by absolute path.
        files: pairs String => String,
        /// Sets the exit code of containers that obey SIGTERM.
        stop_exit_code: i32,
        /// Sets the reaction to a resize.
        resize: Resize,
        /// Sets the time that a resize takes.
        resize_delay: into Delay,
    }
}

/// A behaviour for matching pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PodRule {
    /// Selects the pods.
    pub pods: PodMatcher,
    /// Their behaviour.
    pub behaviour: PodBehaviour,
    /// Weight of the rule. If the first matching rule has one, a rule is drawn for the pod among
    /// all matching rules with a weight, in proportion to their weights.
    pub weight: u32,
}

impl PodRule {
    setters! {
        /// Sets the selection of the pods.
        pods: PodMatcher,
        /// Sets their behaviour.
        behaviour: PodBehaviour,
        /// Sets the weight of the rule.
        weight: u32,
    }

    /// Reads a list of rules in YAML or JSON.
    ///
    /// # Errors
    ///
    /// The text is not a list of rules; the error says where.
    pub fn list_from_yaml(text: &str) -> Result<Vec<Self>, ParsePodRulesError> {
        serde_saphyr::from_str(text).map_err(|err| {
            let err = err.to_string();
            ParsePodRulesError(err.lines().next().unwrap_or_default().to_owned())
        })
    }
}

/// A text is not a list of pod rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading pod rules: {0}")]
pub struct ParsePodRulesError(String);

/// Identifies a rule added to a running control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRuleId(pub(crate) u64);

/// The kubelet's exponential back-off, which doubles with each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackOff {
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(10),
            max: Duration::from_secs(300),
        }
    }
}

impl BackOff {
    setters! {
        /// Sets the first delay.
        initial: Duration,
        /// Sets the longest delay.
        max: Duration,
    }

    /// Returns the delay after the `nth` failure, counted from 1.
    pub(super) fn after(self, nth: u32) -> Duration {
        let factor = 2_u32.saturating_pow(nth.saturating_sub(1));
        self.initial.saturating_mul(factor).min(self.max)
    }
}
