//! Stale reads: responses with an older state, as from a server's watch cache.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::engine::Faults;
use super::facts::RequestFacts;
use super::matcher::RequestMatcher;

/// Selects requests that see an older state. As with a lagging watch cache, this affects watches,
/// and gets and lists with a `resourceVersion`. Reads without one see the newest state, as do
/// further pages of a list. A read of a version newer than its view waits for it, then fails with
/// 504. Events stay in order and none is lost. States older than the log (see
/// `ServerConfig::log_window`) result in 410.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewRule {
    /// Selects requests; only `get`, `list` and `watch` are affected.
    #[serde(rename = "match", default)]
    pub matcher: RequestMatcher,
    /// The visible state.
    pub view: View,
}

/// The state that a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum View {
    /// The state this number of revisions ago.
    Behind(u64),
    /// The state at a revision, until the rule is removed; newer revisions are hidden.
    FrozenAt(u64),
}

impl ViewRule {
    /// Creates a rule for matching reads.
    pub fn new(matcher: RequestMatcher, view: View) -> Self {
        Self { matcher, view }
    }
}

impl View {
    /// Returns the newest visible revision, which is at least 1.
    pub(super) fn horizon(self, newest: u64) -> u64 {
        match self {
            Self::Behind(revisions) => newest.saturating_sub(revisions).max(1),
            Self::FrozenAt(revision) => revision.min(newest),
        }
    }
}

impl Faults {
    /// Returns the view of a request.
    pub(crate) fn read_view(&self, facts: Arc<RequestFacts>) -> ReadView {
        ReadView {
            faults: self.clone(),
            facts,
        }
    }
}

/// The view of one request.
#[derive(Clone, Debug)]
pub struct ReadView {
    pub faults: Faults,
    facts: Arc<RequestFacts>,
}

impl ReadView {
    /// Returns the newest revision that the request sees; `None` if it is unlimited.
    pub(crate) fn horizon(&self, newest: u64) -> Option<u64> {
        self.faults.horizon(&self.facts, newest)
    }
}
