//! Rules for requests.

use serde::{Deserialize, Serialize};

use super::action::FaultAction;
use super::matcher::RequestMatcher;
use super::schedule::Schedule;
use super::setters::rule_setters;

/// Selects requests, their number, and an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    /// The rule's name in the audit log; the action's name if empty. It also seeds the rule's
    /// random draws, so that rules don't shift each other's draws.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Selects requests.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// Limits the number of affected requests.
    #[serde(default)]
    pub when: Schedule,
    /// The action.
    pub action: FaultAction,
}

impl FaultRule {
    /// Creates a rule for every matching request.
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

/// Identifies an active rule, for its removal from [`Faults`](super::Faults).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub(super) u64);
