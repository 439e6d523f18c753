//! Pod behaviour as data: a default, rules, and a closure of the test.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::annotations;
use super::script::{ContainerName, Handlers, LogLine, PortServer, Program, ScriptedCommand};
use crate::delay::Delay;
use crate::matcher::{Pattern, PodMatcher};

/// Outcome of a running pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// Reaction of a pod's containers to SIGTERM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// They stop after the stop delay, and are killed if that is longer than the grace period.
    #[default]
    Obeys,
    /// They keep running until they are killed at the end of the grace period.
    IgnoresSigterm,
    /// They can't be killed: the pod stays Terminating.
    Hangs,
}

/// A container's crashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
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

/// Failing image pulls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullFailure {
    /// Number of failing pulls; all of them if `None`.
    pub times: Option<u32>,
    /// The affected images; if `None`, those in the pod at its creation, so that a new image works.
    pub image: Option<Pattern>,
    /// The registry's error; if `None`, that the image is unknown.
    pub message: Option<String>,
}

/// Alternating readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Flap {
    /// Duration of each ready phase.
    pub ready_for: Delay,
    /// Duration of each unready phase.
    pub unready_for: Delay,
    /// Number of times the pod becomes unready; unlimited if `None`.
    pub times: Option<u32>,
}

/// A step of a readiness script and its duration. The last step never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadinessStep {
    /// The pod is ready.
    Ready(Delay),
    /// The pod is not ready.
    Unready(Delay),
}

/// Behaviour of a pod in each stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
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
    /// Answers to commands that clients execute; the first that matches wins. Without one, a shell
    /// with a few programs answers.
    pub commands: Vec<ScriptedCommand>,
    /// Exit code of containers that obey SIGTERM.
    pub stop_exit_code: i32,
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
}

/// A behaviour for matching pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PodRule {
    /// Selects the pods.
    pub pods: PodMatcher,
    /// Their behaviour.
    pub behaviour: PodBehaviour,
    /// Weight of the rule. If the first matching rule has one, a rule is drawn for the pod among
    /// all matching rules with a weight, in proportion to their weights.
    pub weight: u32,
}

/// Identifies a rule added to a running control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRuleId(pub(crate) u64);

/// The kubelet's exponential back-off, which doubles with each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Returns the delay after the `nth` failure, counted from 1.
    pub(super) fn after(self, nth: u32) -> Duration {
        let factor = 2_u32.saturating_pow(nth.saturating_sub(1));
        self.initial.saturating_mul(factor).min(self.max)
    }
}

/// Chooses the behaviour of a pod given as JSON, or leaves it to the rules with `None`.
pub type BehaviourRule = dyn Fn(&Value) -> Option<PodBehaviour> + Send + Sync;

/// Settings of the kubelets. Precedence: [`Pods::behave`](crate::Pods::behave), pod annotations,
/// rules added at run time, the closure, the first matching rule here, the default.
#[derive(Clone, Default)]
pub struct KubeletConfig {
    /// The default behaviour.
    pub default: PodBehaviour,
    /// Rules for matching pods.
    pub rules: Vec<PodRule>,
    /// A closure of the test.
    pub rule: Option<Arc<BehaviourRule>>,
    /// Back-off between the starts of a crashing container, and between image pulls.
    pub back_off: BackOff,
    /// Closures that answer for containers; see [`on_command`](Self::on_command) and
    /// [`on_port`](Self::on_port).
    pub handlers: Handlers,
    /// Starts pods although the secrets, config maps or service accounts that they refer to don't
    /// exist. By default such pods wait, as on a node.
    pub ignores_missing_references: bool,
}

impl fmt::Debug for KubeletConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletConfig")
            .field("default", &self.default)
            .field("rules", &self.rules)
            .field("rule", &self.rule.as_ref().map(|_| "…"))
            .field("back_off", &self.back_off)
            .field("handlers", &self.handlers)
            .field(
                "ignores_missing_references",
                &self.ignores_missing_references,
            )
            .finish()
    }
}

impl KubeletConfig {
    /// Gives every pod this behaviour.
    pub fn new(default: PodBehaviour) -> Self {
        Self {
            default,
            ..Self::default()
        }
    }

    /// Sets the closure. It is called on every write to a pod and by
    /// [`Pods::refresh`](crate::Pods::refresh).
    #[must_use]
    pub fn rule(
        mut self,
        rule: impl Fn(&Value) -> Option<PodBehaviour> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Sets the closure that answers the commands which clients execute in containers.
    #[must_use]
    pub fn on_command(
        mut self,
        choose: impl Fn(&ContainerName, &[String]) -> Option<Program> + Send + Sync + 'static,
    ) -> Self {
        self.handlers.command = Some(Arc::new(choose));
        self
    }

    /// Sets the closure that serves the ports which clients forward. Without it, ports in the
    /// containers' specs echo, and others refuse connections.
    #[must_use]
    pub fn on_port(
        mut self,
        choose: impl Fn(&str, &str, u16) -> Option<PortServer> + Send + Sync + 'static,
    ) -> Self {
        self.handlers.port = Some(Arc::new(choose));
        self
    }

    /// Gives matching pods this behaviour, unless an earlier rule matches.
    #[must_use]
    pub fn when(mut self, pods: PodMatcher, behaviour: PodBehaviour) -> Self {
        self.rules.push(PodRule {
            pods,
            behaviour,
            weight: 0,
        });
        self
    }

    /// Returns the behaviour of a pod, the `nth` with its name, and the errors in its annotations.
    /// The rules `added` at run time take precedence, and `drawn` decides between rules with
    /// weights.
    pub(super) fn behaviour<'a>(
        &'a self,
        pod: &Value,
        nth: u32,
        added: impl Iterator<Item = &'a PodRule>,
        drawn: u64,
    ) -> (PodBehaviour, Vec<String>) {
        let added = choose(added, pod, nth, drawn).cloned();
        let ruled = || self.rule.as_ref().and_then(|rule| rule(pod));
        let behaviour = added.or_else(ruled).unwrap_or_else(|| {
            let chosen = choose(self.rules.iter(), pod, nth, drawn);
            chosen.unwrap_or(&self.default).clone()
        });
        annotations::overridden(behaviour, pod)
    }
}

/// Chooses the rule for a pod, the `nth` with its name.
fn choose<'a>(
    rules: impl Iterator<Item = &'a PodRule>,
    pod: &Value,
    nth: u32,
    drawn: u64,
) -> Option<&'a PodBehaviour> {
    let mut matching = rules.filter(|rule| rule.pods.matches(pod, nth));
    let first = matching.next()?;
    if first.weight == 0 {
        return Some(&first.behaviour);
    }
    let mut weighty = vec![first];
    weighty.extend(matching.filter(|rule| rule.weight > 0));
    let total: u64 = weighty.iter().map(|rule| u64::from(rule.weight)).sum();
    let mut left = drawn % total;
    for rule in weighty {
        match left.checked_sub(u64::from(rule.weight)) {
            None => return Some(&rule.behaviour),
            Some(rest) => left = rest,
        }
    }
    None
}
