//! What happens to a request that a rule strikes.

use serde::{Deserialize, Serialize};

use super::draw::Delay;
use super::error::FaultError;

/// What happens to a request that a rule strikes. Delays and slow bodies add up and later rules
/// are asked too; any other action is the last one of its request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum FaultAction {
    /// It waits so long before anything is done.
    Delay(Delay),
    /// It is done at once; the answer comes so much later.
    DelayAnswer(Delay),
    /// The body of the answer comes in small pieces.
    SlowBody {
        /// The size of a piece in bytes.
        piece_bytes: u32,
        /// How long before each piece.
        pause: Delay,
    },
    /// It is answered with this error; nothing is done.
    Respond(FaultError),
    /// The connection is dropped; nothing is done.
    DropBeforeCommit,
    /// It is done, then the connection is dropped: the client can't know that it was.
    CommitThenDrop,
    /// It is done, then answered with this error.
    CommitThenRespond(FaultError),
}

impl FaultAction {
    /// An error as the server makes it.
    pub fn respond(error: impl Into<FaultError>) -> Self {
        Self::Respond(error.into())
    }

    /// The action's name in fault plans and in the audit log.
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
