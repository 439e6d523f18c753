//! How pods behave, as data: for all, by rules, by a closure of the test.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::annotations;
use crate::delay::Delay;
use crate::matcher::{Pattern, PodMatcher};

/// What becomes of a pod that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It becomes ready.
    #[default]
    Ready,
    /// It runs and never becomes ready.
    NeverReady,
    /// It stays pending: its containers are being created for ever.
    NeverStarts,
    /// It runs, then ends in the phase Failed.
    Fails,
    /// It runs, then ends in the phase Succeeded.
    Succeeds,
}

/// Why a pod ends in the phase Failed or Succeeded.
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

/// What a pod's containers do when they are told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// They stop after the stop delay, and are killed if that is longer than the grace period.
    #[default]
    Obeys,
    /// They go on until they are killed at the end of the grace period.
    IgnoresSigterm,
    /// They can't be killed: the pod stays Terminating.
    Hangs,
}

/// How a container crashes, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Crash {
    /// From the start of the container to its crash.
    pub after: Delay,
    /// How often; none is for ever.
    pub times: Option<u32>,
    /// The exit code; 137 for `OOMKilled` and 128 + n for a signal unless set.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The reason that is reported, such as `OOMKilled`.
    pub reason: String,
    /// Which container, an init container maybe; none is the first of the main ones.
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

/// How an image can't be pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePullFailure {
    /// How many tries fail; none is all of them.
    pub times: Option<u32>,
    /// Which images; none is those that the pod was created with, so that another image helps.
    pub image: Option<Pattern>,
    /// What the registry says; none is that it doesn't know the image.
    pub message: Option<String>,
}

/// How readiness comes and goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Flap {
    /// How long the pod is ready.
    pub ready_for: Delay,
    /// How long it is not.
    pub unready_for: Delay,
    /// How often it loses its readiness; none is for ever.
    pub times: Option<u32>,
}

/// A step of a pod's readiness, and how long it lasts. The last step of a script lasts for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadinessStep {
    /// The pod is ready.
    Ready(Delay),
    /// It is not.
    Unready(Delay),
}

/// How a pod behaves, stage by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PodBehaviour {
    /// From being bound to a node to the start of its containers.
    pub start_delay: Delay,
    /// How long each init container runs.
    pub init_delay: Delay,
    /// From running to ready, or to the end.
    pub ready_delay: Delay,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Why it ends, if it does.
    pub cause: Cause,
    /// Whether its images can't be pulled.
    pub image_pull_failure: Option<ImagePullFailure>,
    /// Whether a container crashes.
    pub crash: Option<Crash>,
    /// Whether readiness comes and goes.
    pub flap: Option<Flap>,
    /// How readiness comes and goes step by step, from when the pod would be ready on; wins over
    /// `flap`. Crashes don't stop it, but a container that was restarted takes part only when it
    /// would be ready again.
    pub readiness: Vec<ReadinessStep>,
    /// How long the hook before stopping takes.
    pub pre_stop_delay: Delay,
    /// From being told to stop to having stopped.
    pub stop_delay: Delay,
    /// What its containers do when they are told to stop.
    pub stop: Stop,
    /// The exit code of containers that stop when they are told to.
    pub stop_exit_code: i32,
}

/// A behaviour for some pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PodRule {
    /// Which pods.
    pub pods: PodMatcher,
    /// How they behave.
    pub behaviour: PodBehaviour,
    /// If the first rule that matches has a weight, one is drawn for the pod among all rules that
    /// match and have one, as often as their weights say.
    pub weight: u32,
}

/// A rule that was added to a control plane that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRuleId(pub(crate) u64);

/// How long the kubelet waits before it tries again what failed: twice as long each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first time.
    pub initial: Duration,
    /// At most.
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
    /// How long to wait after the `nth` failure, counted from 1.
    pub(super) fn after(self, nth: u32) -> Duration {
        let factor = 2_u32.saturating_pow(nth.saturating_sub(1));
        self.initial.saturating_mul(factor).min(self.max)
    }
}

/// Decides on the behaviour of a pod, given as JSON; none leaves it to the rules.
pub type BehaviourRule = dyn Fn(&Value) -> Option<PodBehaviour> + Send + Sync;

/// How the kubelets treat pods. Annotations on a pod win over rules that were added at run time,
/// those over the closure, the closure over the rules here, the first rule that matches over later
/// ones and over the default.
#[derive(Clone, Default)]
pub struct KubeletConfig {
    /// How pods behave that nothing else is said of.
    pub default: PodBehaviour,
    /// Rules for some pods.
    pub rules: Vec<PodRule>,
    /// A rule of the test.
    pub rule: Option<Arc<BehaviourRule>>,
    /// How long it waits between two starts of a container that crashes, and between two tries to
    /// pull an image.
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
    /// Every pod behaves so.
    pub fn new(default: PodBehaviour) -> Self {
        Self {
            default,
            ..Self::default()
        }
    }

    /// Asks this rule first: when a pod is written, and when
    /// [`Pods::refresh`](crate::Pods::refresh) says so.
    #[must_use]
    pub fn rule(
        mut self,
        rule: impl Fn(&Value) -> Option<PodBehaviour> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Pods that match behave so, unless an earlier rule is for them.
    #[must_use]
    pub fn when(mut self, pods: PodMatcher, behaviour: PodBehaviour) -> Self {
        self.rules.push(PodRule {
            pods,
            behaviour,
            weight: 0,
        });
        self
    }

    /// The behaviour of a pod, which is the `nth` of its name, and what is wrong with its
    /// annotations. The rules that were `added` since win over all others, and `drawn` decides
    /// between rules with weights.
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

/// The behaviour for a pod, which is the `nth` of its name.
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
