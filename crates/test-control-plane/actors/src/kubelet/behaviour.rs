//! Pod behaviour as data: a default, rules, and a closure of the test.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::annotations;
use crate::delay::Delay;
use crate::matcher::{Pattern, PodMatcher};

/// Outcome of a running pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The pod becomes ready.
    #[default]
    Ready,
    /// The pod runs but never becomes ready.
    NeverReady,
    /// The pod stays Pending: its containers are never created.
    NeverStarts,
    /// The pod runs, then ends in the phase Failed.
    Fails,
    /// The pod runs, then ends in the phase Succeeded.
    Succeeds,
}

/// Cause of the phase Failed or Succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The containers exited.
    #[default]
    Exited,
    /// The node ran short of memory.
    Evicted,
    /// The node shuts down.
    NodeShutdown,
    /// A critical pod needed the resources.
    Preempted,
    /// The pod exceeded its `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// Another pod holds a host port that this pod needs. The pod never ran.
    NodePorts,
}

/// Reaction of a pod's containers to SIGTERM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The containers stop after the stop delay. The kubelet kills them at the end of the grace
    /// period.
    #[default]
    Obeys,
    /// The containers run until the kubelet kills them at the end of the grace period.
    IgnoresSigterm,
    /// The containers survive SIGKILL, so the pod stays Terminating.
    Hangs,
}

/// A repeated container crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Crash {
    /// From the start of the container to its crash.
    pub after: Delay,
    /// Number of crashes; `None` is unlimited.
    pub times: Option<u32>,
    /// Exit code; by default 137 for `OOMKilled` and 128 + n for a signal.
    pub exit_code: Option<i32>,
    /// Signal that ended the container.
    pub signal: Option<i32>,
    /// Reported reason, such as `OOMKilled`.
    pub reason: String,
    /// Name of the container, possibly an init container. `None` selects the first main container.
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

/// A failure to pull an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullFailure {
    /// Number of failed attempts; `None` is all.
    pub times: Option<u32>,
    /// Affected images. `None` selects the images that the pod was created with, so another image
    /// fixes the pod.
    pub image: Option<Pattern>,
    /// Error message of the registry. `None` reports an unknown image.
    pub message: Option<String>,
}

/// Alternating readiness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Flap {
    /// Duration of each ready period.
    pub ready_for: Delay,
    /// Duration of each unready period.
    pub unready_for: Delay,
    /// Number of times that the pod loses its readiness; `None` is unlimited.
    pub times: Option<u32>,
}

/// One step of a readiness script with its duration. The last step lasts indefinitely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadinessStep {
    /// The pod is ready.
    Ready(Delay),
    /// The pod is unready.
    Unready(Delay),
}

/// Behaviour of a pod through its lifecycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PodBehaviour {
    /// From the binding to a node to the start of the containers.
    pub start_delay: Delay,
    /// Run time of each init container.
    pub init_delay: Delay,
    /// From running to ready, or to the end of the pod.
    pub ready_delay: Delay,
    /// Outcome of the pod.
    pub outcome: Outcome,
    /// Cause of the pod's end, if it ends.
    pub cause: Cause,
    /// Failure to pull the pod's images.
    pub image_pull_failure: Option<ImagePullFailure>,
    /// Crash of a container.
    pub crash: Option<Crash>,
    /// Alternating readiness.
    pub flap: Option<Flap>,
    /// Readiness script, starting when the pod would become ready. It overrides `flap`. It
    /// continues through crashes, but a restarted container rejoins only when it would be ready
    /// again.
    pub readiness: Vec<ReadinessStep>,
    /// Duration of the preStop hook.
    pub pre_stop_delay: Delay,
    /// From SIGTERM to the end of the containers.
    pub stop_delay: Delay,
    /// Reaction of the containers to SIGTERM.
    pub stop: Stop,
    /// Exit code of containers that stop on SIGTERM.
    pub stop_exit_code: i32,
}

/// A behaviour for some pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PodRule {
    /// Matching pods.
    pub pods: PodMatcher,
    /// Their behaviour.
    pub behaviour: PodBehaviour,
    /// Relative probability. If the first matching rule has a weight, a weighted draw among all
    /// matching rules with a weight decides for the pod.
    pub weight: u32,
}

/// Handle of a rule added at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRuleId(pub(crate) u64);

/// Exponential back-off of the kubelet: each delay doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// First delay.
    pub initial: Duration,
    /// Maximum delay.
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

/// Chooses the behaviour of a pod, given as JSON. `None` leaves the choice to the rules.
pub type BehaviourRule = dyn Fn(&Value) -> Option<PodBehaviour> + Send + Sync;

/// Settings of the kubelets. Precedence: annotations on a pod, then rules added at run time, then
/// the closure, then the rules here (the first match), then the default.
#[derive(Clone, Default)]
pub struct KubeletConfig {
    /// Default behaviour.
    pub default: PodBehaviour,
    /// Rules for some pods.
    pub rules: Vec<PodRule>,
    /// Closure of the test.
    pub rule: Option<Arc<BehaviourRule>>,
    /// Back-off between restarts of a crashing container, and between attempts to pull an image.
    pub back_off: BackOff,
}

impl fmt::Debug for KubeletConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletConfig")
            .field("default", &self.default)
            .field("rules", &self.rules)
            .field("rule", &self.rule.as_ref().map(|_| "…"))
            .field("back_off", &self.back_off)
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

    /// Sets a closure that has precedence over the rules. It runs on each write of a pod and on
    /// [`Pods::refresh`](crate::Pods::refresh).
    #[must_use]
    pub fn rule(
        mut self,
        rule: impl Fn(&Value) -> Option<PodBehaviour> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Adds a rule for the matching pods. Earlier rules have precedence.
    #[must_use]
    pub fn when(mut self, pods: PodMatcher, behaviour: PodBehaviour) -> Self {
        self.rules.push(PodRule {
            pods,
            behaviour,
            weight: 0,
        });
        self
    }

    /// Returns the behaviour of the `nth` pod of this name, with complaints about its annotations.
    /// The `added` rules override all others. `drawn` decides between weighted rules.
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

/// Returns the behaviour of the `nth` pod of this name.
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
