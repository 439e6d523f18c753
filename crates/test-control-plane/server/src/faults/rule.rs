//! Rules for requests and their actions.

use serde::{Deserialize, Serialize};

use super::delay::Delay;
use super::error::FaultError;
use super::matcher::RequestMatcher;
use super::schedule::Schedule;

/// Defines the setters of all rules.
macro_rules! rule_setters {
    () => {
        /// Sets the name.
        #[must_use]
        pub fn named(mut self, name: &str) -> Self {
            name.clone_into(&mut self.name);
            self
        }

        /// Limits the matches that the rule affects.
        #[must_use]
        pub fn when(mut self, when: Schedule) -> Self {
            self.when = when;
            self
        }
    };
}

pub(super) use rule_setters;

/// Selects requests, their number, and an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
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

/// Action of a rule on a request. Delays and slow bodies add up, and later rules still apply. Any
/// other action ends the evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum FaultAction {
    /// Delays the request before it is processed.
    Delay(Delay),
    /// Processes the request immediately, but delays the response.
    DelayAnswer(Delay),
    /// Sends the response body in small pieces.
    SlowBody {
        /// The size of a piece in bytes.
        piece_bytes: u32,
        /// Delay before each piece.
        pause: Delay,
    },
    /// Responds with this error without processing the request.
    Respond(FaultError),
    /// Drops the connection without processing the request.
    DropBeforeCommit,
    /// Processes the request, then drops the connection: the client can't know the outcome.
    CommitThenDrop,
    /// Processes the request, then responds with this error.
    CommitThenRespond(FaultError),
}

impl FaultAction {
    /// Creates a response with an error.
    pub fn respond(error: impl Into<FaultError>) -> Self {
        Self::Respond(error.into())
    }

    /// Returns the action's name in fault plans and the audit log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delay(_) => "delay",
            Self::DelayAnswer(_) => "delayAnswer",
            Self::SlowBody { .. } => "slowBody",
            Self::Respond(_) => "respond",
            Self::DropBeforeCommit => "dropBeforeCommit",
            Self::CommitThenDrop => "commitThenDrop",
            Self::CommitThenRespond(_) => "commitThenRespond",
        }
    }
}
