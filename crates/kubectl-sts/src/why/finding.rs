//! One finding: a cause, its evidence and a remedy.

use jiff::Timestamp;
use serde::Serialize;

/// The state of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SetState {
    /// Nothing is left to do.
    Settled,
    /// Time alone completes the next step.
    Waiting,
    /// A person must act.
    #[default]
    Stuck,
}

/// A cause.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Finding {
    /// The state that follows.
    pub(crate) state: SetState,
    /// Stable name of the cause, for programs.
    pub(crate) cause: &'static str,
    /// The cause in one sentence.
    pub(crate) text: String,
    /// Conditions, events and statuses that show it.
    pub(crate) evidence: Vec<String>,
    /// Beginning of the situation.
    #[serde(skip)]
    pub(crate) since: Option<Timestamp>,
    /// Commands that resolve it, to be run in this order.
    pub(crate) resolve: Vec<String>,
    /// Considerations before the commands.
    pub(crate) caution: Option<String>,
    /// Data that go without further action.
    pub(crate) risks: Vec<Risk>,
    /// An object that must be read to confirm the cause.
    #[serde(skip)]
    pub(crate) doubt: Option<Doubt>,
}

/// Data that go without further action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Risk {
    /// The risk in one sentence.
    pub(crate) text: String,
    /// The command that keeps the data.
    pub(crate) protect: Option<String>,
}

/// A doubt about a cause, which another object settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The quota of this name may have room by now.
    Quota(String),
    /// The service account of this name may exist by now.
    ServiceAccount(String),
    /// The priority class of this name may exist by now.
    PriorityClass(String),
    /// The controller may wait in its back-off, or may not run.
    Controller,
    /// The controller with the opt-ins, whose step is next, may not run.
    Holder,
}

impl Finding {
    /// A cause that a person must remove.
    pub(crate) fn stuck(cause: &'static str, text: impl Into<String>) -> Self {
        Self {
            cause,
            text: text.into(),
            ..Self::default()
        }
    }

    /// A cause that time removes.
    pub(crate) fn waiting(cause: &'static str, text: impl Into<String>) -> Self {
        Self {
            state: SetState::Waiting,
            ..Self::stuck(cause, text)
        }
    }

    /// The absence of a cause.
    pub(crate) fn settled() -> Self {
        Self {
            state: SetState::Settled,
            ..Self::stuck("settled", "nothing is left to do")
        }
    }

    /// True if nothing is left to do and no data are at risk.
    pub(crate) fn is_calm(&self) -> bool {
        self.state == SetState::Settled && self.risks.is_empty()
    }

    /// Adds evidence.
    pub(crate) fn shown_by(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// Adds a command.
    pub(crate) fn resolved_by(mut self, command: impl Into<String>) -> Self {
        self.resolve.push(command.into());
        self
    }

    /// Sets the consideration before the commands.
    pub(crate) fn but(mut self, caution: impl Into<String>) -> Self {
        self.caution = Some(caution.into());
        self
    }

    /// Sets the beginning, unless it is known.
    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = self.since.or(since);
        self
    }

    /// Sets the doubt.
    pub(crate) fn doubted_by(mut self, doubt: Doubt) -> Self {
        self.doubt = Some(doubt);
        self
    }
}
