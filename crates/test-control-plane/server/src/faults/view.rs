//! Stale reads: responses with an older state, as from a server's watch cache.

use serde::{Deserialize, Serialize};

use super::matcher::RequestMatcher;

/// Selects requests that see an older state. As with a lagging watch cache, this affects watches,
/// and gets and lists with a `resourceVersion`. Reads without one see the newest state, as do
/// further pages of a list. A read of a version newer than its view waits for it, then fails with
/// 504. Events stay in order and none is lost. States older than the log (see
/// `ServerConfig::log_window`) result in 410.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
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
#[non_exhaustive]
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
