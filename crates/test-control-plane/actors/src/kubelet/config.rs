//! Settings of the kubelets.

use std::fmt;
use std::sync::Arc;

use kube_test_control_plane_api::setters;
use serde_json::Value;

use super::annotations;
use super::behaviour::{BackOff, PodBehaviour, PodRule};
use super::script::{ContainerName, Handlers, PortServer, Program};
use crate::matcher::PodMatcher;

/// Chooses the behaviour of a pod given as JSON, or leaves it to the rules with `None`.
pub type BehaviourRule = dyn Fn(&Value) -> Option<PodBehaviour> + Send + Sync;

/// Settings of the kubelets. Precedence: [`Pods::behave`](crate::Pods::behave), pod annotations,
/// rules added at run time, the closure, the first matching rule here, the default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct KubeletConfig {
    /// The default behaviour, which [`new`](Self::new) sets.
    pub default: PodBehaviour,
    /// Rules for matching pods.
    pub rules: Vec<PodRule>,
    /// A closure of the test.
    pub rule: Option<Arc<BehaviourRule>>,
    /// Back-off between the starts of a crashing container, and between image pulls.
    pub back_off: BackOff,
    /// Closures that respond for containers; see [`on_command`](Self::on_command) and
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

    setters! {
        /// Sets the rules for matching pods; [`when`](Self::when) adds one.
        rules: each PodRule,
        /// Sets the back-off between the starts of a crashing container, and between image pulls.
        back_off: BackOff,
        /// Starts pods although the secrets, config maps or service accounts that they refer to
        /// don't exist.
        ignores_missing_references: bool,
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

    /// Sets the closure that responds to the commands which clients execute in containers.
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
