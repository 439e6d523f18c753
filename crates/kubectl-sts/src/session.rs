//! The context of a question, and its answer.

use jiff::Timestamp;
use kube::Client;

use crate::output::Style;

/// Everything that an answer depends on besides the question.
pub struct Session {
    /// The cluster.
    pub client: Client,
    /// The namespace of the question.
    pub namespace: String,
    /// The current time.
    pub now: Timestamp,
    /// The style of texts.
    pub style: Style,
}

/// The result of an answer, for scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The answer reports nothing to act on, or the wait has ended.
    #[default]
    Clear,
    /// A plan is dangerous, the cluster is not ready to switch or to upgrade, a shadow report shows
    /// differences, or a wait finds its set stuck.
    Findings,
    /// The time limit of a wait was reached.
    Late,
}

impl Verdict {
    /// The exit code of the program.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Clear => 0,
            Self::Findings => 2,
            Self::Late => 3,
        }
    }

    /// Findings if there are any.
    pub(crate) fn of(has_findings: bool) -> Self {
        if has_findings {
            Self::Findings
        } else {
            Self::Clear
        }
    }
}

/// An answer.
pub struct Reply {
    /// The text, with a line break at the end.
    pub text: String,
    /// Lines about gaps in the answer, such as objects that can't be read and checks that were
    /// skipped.
    pub notes: Vec<String>,
    /// The result, beyond the text.
    pub verdict: Verdict,
    /// True if a watched set is settled.
    pub is_settled: bool,
}
