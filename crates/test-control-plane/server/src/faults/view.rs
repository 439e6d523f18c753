//! Old views: reads that a server may answer from its memory show an older state.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::engine::Faults;
use super::facts::RequestFacts;
use super::matcher::RequestMatcher;

/// Which requests see an older state. As with a server whose watch cache lags, this is true of
/// watches, and of gets and lists that name a `resourceVersion`; reads that name none are answered
/// with the newest state, as are those of the next pages of a list. A read that wants a version
/// which its view doesn't have yet waits for it, then fails with 504. Events stay in order and
/// none is lost. States older than the log (see `ServerConfig::log_window`) are answered with 410.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewRule {
    /// Which requests; verbs other than `get`, `list` and `watch` don't matter.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// What they see.
    pub view: View,
}

/// What a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum View {
    /// The state so many revisions ago.
    Behind(u64),
    /// The state at a revision, until the rule is removed; newer ones don't exist yet.
    FrozenAt(u64),
}

impl ViewRule {
    /// A rule for the reads that match.
    pub fn new(matcher: RequestMatcher, view: View) -> Self {
        Self { matcher, view }
    }
}

impl View {
    /// The newest revision that is seen. There is no revision before the first.
    pub(super) fn horizon(self, newest: u64) -> u64 {
        match self {
            Self::Behind(revisions) => newest.saturating_sub(revisions).max(1),
            Self::FrozenAt(revision) => revision.min(newest),
        }
    }
}

impl Faults {
    /// What a request sees.
    pub(crate) fn eyes(&self, facts: Arc<RequestFacts>) -> Eyes {
        Eyes {
            faults: self.clone(),
            facts,
        }
    }
}

/// What one request sees.
#[derive(Clone, Debug)]
pub struct Eyes {
    pub faults: Faults,
    facts: Arc<RequestFacts>,
}

impl Eyes {
    /// The newest revision that the request sees; none if it sees everything.
    pub(crate) fn horizon(&self, newest: u64) -> Option<u64> {
        self.faults.horizon(&self.facts, newest)
    }
}
