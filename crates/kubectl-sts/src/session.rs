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
    /// Facts that the answer lacks, such as objects that can't be decoded or may not be read.
    pub notes: Vec<String>,
    /// True if a planned change would delete data or take down every pod at once, or if the cluster
    /// may not switch yet.
    pub has_objection: bool,
    /// True if a watched set is settled.
    pub is_settled: bool,
}
