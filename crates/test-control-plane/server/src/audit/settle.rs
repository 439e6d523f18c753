//! Waits until changes stop.

use std::time::Duration;

use super::entry::AuditEntry;
use crate::faults::RequestMatcher;

/// Conditions for a settled cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settle {
    /// Required time without changes.
    pub quiet: Duration,
    /// Time limit.
    pub limit: Duration,
    /// Ignored changes and errors. By default those of leases, which are renewed indefinitely.
    pub ignore: Vec<RequestMatcher>,
    /// True if a failed request counts like a change, so that a client whose requests keep failing
    /// doesn't settle.
    pub counts_errors: bool,
}

/// The cluster did not settle in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster did not settle within {limit:?}; the newest changes and errors:{}", lines(.changes))]
#[non_exhaustive]
pub struct NotSettled {
    /// The time limit.
    pub limit: Duration,
    /// The summaries of the latest changes, and of failed requests if they count; oldest first.
    pub changes: Vec<String>,
}

fn lines(changes: &[String]) -> String {
    changes
        .iter()
        .fold(String::new(), |text, line| text + "\n  " + line)
}

impl Settle {
    /// Requires `quiet` time without changes, within one hour.
    pub fn quiet_for(quiet: Duration) -> Self {
        Self {
            quiet,
            limit: Duration::from_secs(3600),
            ignore: vec![RequestMatcher::any().resource("leases").include_actors()],
            counts_errors: false,
        }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Also requires the quiet time to be free of [errors](AuditEntry::is_error).
    #[must_use]
    pub fn without_errors(mut self) -> Self {
        self.counts_errors = true;
        self
    }

    /// Also ignores matching changes.
    #[must_use]
    pub fn ignore(mut self, matcher: RequestMatcher) -> Self {
        self.ignore.push(matcher);
        self
    }

    pub(super) fn counts(&self, entry: &AuditEntry) -> bool {
        (entry.is_change() || self.counts_errors && entry.is_error()) && {
            let facts = entry.facts();
            !self.ignore.iter().any(|m| m.matches(&facts, &entry.body))
        }
    }
}
