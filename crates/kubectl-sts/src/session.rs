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

/// An answer.
pub struct Reply {
    /// The text, with a line break at the end.
    pub text: String,
    /// Lines about gaps in the answer, such as objects that can't be read and checks that were
    /// skipped.
    pub notes: Vec<String>,
    /// True if a plan is dangerous, the cluster is not ready to switch, or a shadow report shows
    /// differences.
    pub has_findings: bool,
    /// True if a watched set is settled.
    pub is_settled: bool,
}
