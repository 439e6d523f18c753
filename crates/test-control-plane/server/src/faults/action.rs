//! Actions of fault rules on requests.

use serde::{Deserialize, Serialize};

use super::draw::Delay;
use super::error::FaultError;

/// Action of a rule on a request. Delays and slow bodies add up, and later rules still apply. Any
/// other action ends the evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
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
