//! Rules for requests.

use serde::{Deserialize, Serialize};

use super::action::FaultAction;
use super::matcher::RequestMatcher;
use super::schedule::Schedule;
use super::setters::rule_setters;

/// Which requests, how many of them, and what happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    /// What the audit log calls it; the action's name if it is empty. It also seeds what the rule
    /// draws by chance, so that rules don't shift each other's draws.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which requests.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// How many of them.
    #[serde(default)]
    pub when: Schedule,
    /// What happens.
    pub action: FaultAction,
}

impl FaultRule {
    /// A rule that strikes every request that matches.
    pub fn new(matcher: RequestMatcher, action: FaultAction) -> Self {
        Self {
            name: String::new(),
            matcher,
            when: Schedule::always(),
            action,
        }
    }

    rule_setters!();
}

/// A rule in force; removes it from [`Faults`](super::Faults).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub(super) u64);
