//! How pods behave: for all, by a rule of the test, or by annotations on the pod.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::object::MetadataRef;

/// The annotations that set a pod's behaviour start so: `start-delay`, `ready-delay`,
/// `stop-delay` (such as `500ms`, `2s` or `1m`), `outcome`.
const ANNOTATION_PREFIX: &str = "kubelet.test-control-plane/";

/// What becomes of a pod that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It becomes ready; annotation value `ready`.
    #[default]
    Ready,
    /// It runs and never becomes ready; `never-ready`.
    NeverReady,
    /// It stays pending; `never-starts`.
    NeverStarts,
    /// It runs, then fails; `fails`.
    Fails,
    /// It runs, then succeeds; `succeeds`.
    Succeeds,
}

/// How a pod behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodBehaviour {
    /// From being bound to a node to the phase Running.
    pub start_delay: Duration,
    /// From running to ready, or to the end.
    pub ready_delay: Duration,
    /// From the deletion to the end of the containers; never longer than the grace period.
    pub stop_delay: Duration,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// Decides on the behaviour of a pod, given as JSON; none leaves it to the default.
pub type BehaviourRule = dyn Fn(&Value) -> Option<PodBehaviour> + Send + Sync;

/// How the kubelet treats pods. Annotations on a pod win over the rule, the rule over the default.
#[derive(Clone, Default)]
pub struct KubeletConfig {
    /// How pods behave that nothing else is said of.
    pub default: PodBehaviour,
    /// A rule of the test.
    pub rule: Option<Arc<BehaviourRule>>,
}

impl fmt::Debug for KubeletConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletConfig")
            .field("default", &self.default)
            .field("rule", &self.rule.as_ref().map(|_| "…"))
            .finish()
    }
}

impl KubeletConfig {
    /// Every pod behaves so.
    pub fn new(default: PodBehaviour) -> Self {
        Self {
            default,
            rule: None,
        }
    }

    /// Asks this rule first.
    #[must_use]
    pub fn rule(
        mut self,
        rule: impl Fn(&Value) -> Option<PodBehaviour> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// The behaviour of a pod.
    pub(super) fn behaviour(&self, pod: &Value) -> PodBehaviour {
        let ruled = self.rule.as_ref().and_then(|rule| rule(pod));
        let mut behaviour = ruled.unwrap_or(self.default);
        let metadata = MetadataRef(pod.get("metadata"));
        let text = |name: &str| metadata.annotation(&format!("{ANNOTATION_PREFIX}{name}"));
        let delay = |name: &str| text(name).and_then(parse_duration);
        behaviour.start_delay = delay("start-delay").unwrap_or(behaviour.start_delay);
        behaviour.ready_delay = delay("ready-delay").unwrap_or(behaviour.ready_delay);
        behaviour.stop_delay = delay("stop-delay").unwrap_or(behaviour.stop_delay);
        behaviour.outcome = match text("outcome") {
            Some("ready") => Outcome::Ready,
            Some("never-ready") => Outcome::NeverReady,
            Some("never-starts") => Outcome::NeverStarts,
            Some("fails") => Outcome::Fails,
            Some("succeeds") => Outcome::Succeeds,
            _ => behaviour.outcome,
        };
        behaviour
    }
}

/// Parses a number with one of the units ms, s, m, h.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Some(Duration::from_secs(120)));
        for text in ["", "5", "s", "-1s", "1d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
