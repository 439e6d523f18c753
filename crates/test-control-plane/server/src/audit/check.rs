//! Assertions on the logged requests.

use super::entry::AuditEntry;
use super::log::{AuditLog, AuditMark, Forgotten};
use crate::faults::RequestMatcher;

/// Unexpected requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditFinding {
    /// Too many requests.
    #[error("{} requests instead of at most {max}:{}", found.len(), lines(found))]
    TooMany {
        /// The allowed number of requests.
        max: usize,
        /// The summaries of all matching requests.
        found: Vec<String>,
    },
    /// Requests that are not allowed.
    #[error("{} requests that are not allowed:{}", found.len(), lines(found))]
    NotAllowed {
        /// Their summaries.
        found: Vec<String>,
    },
    /// The log is incomplete.
    #[error(transparent)]
    Forgotten(#[from] Forgotten),
}

fn lines(found: &[String]) -> String {
    found
        .iter()
        .fold(String::new(), |text, line| text + "\n  " + line)
}

fn summaries(entries: &[AuditEntry]) -> Vec<String> {
    entries.iter().map(AuditEntry::summary).collect()
}

impl AuditLog {
    /// Returns the matching write requests after a mark, regardless of their outcome. Requests of
    /// the control plane's own actors match only if included.
    ///
    /// # Errors
    ///
    /// The log no longer has all requests after the mark.
    pub fn writes_since(
        &self,
        mark: AuditMark,
        matcher: &RequestMatcher,
    ) -> Result<Vec<AuditEntry>, Forgotten> {
        self.since(mark, |e| {
            e.is_write() && matcher.matches(&e.facts(), &e.body)
        })
    }

    /// Asserts that there are no writes after a mark.
    ///
    /// # Errors
    ///
    /// There are writes, or the log is incomplete.
    pub fn expect_no_writes(
        &self,
        mark: AuditMark,
        matcher: &RequestMatcher,
    ) -> Result<(), AuditFinding> {
        let found = self.writes_since(mark, matcher)?;
        at_most(0, &found)
    }

    /// Asserts that there are at most `max` requests after a mark, including reads unless the
    /// matcher names verbs.
    ///
    /// # Errors
    ///
    /// There are more requests, or the log is incomplete.
    pub fn expect_at_most(
        &self,
        mark: AuditMark,
        max: usize,
        matcher: &RequestMatcher,
    ) -> Result<(), AuditFinding> {
        let found = self.since(mark, |e| matcher.matches(&e.facts(), &e.body))?;
        at_most(max, &found)
    }

    /// Asserts that a client sent only allowed requests after a mark.
    ///
    /// # Errors
    ///
    /// It sent other requests, or the log is incomplete.
    pub fn expect_only(
        &self,
        mark: AuditMark,
        client: &RequestMatcher,
        allowed: &[RequestMatcher],
    ) -> Result<(), AuditFinding> {
        let found = self.since(mark, |entry| {
            let facts = entry.facts();
            client.matches(&facts, &entry.body)
                && !allowed.iter().any(|a| a.matches(&facts, &entry.body))
        })?;
        if found.is_empty() {
            return Ok(());
        }
        Err(AuditFinding::NotAllowed {
            found: summaries(&found),
        })
    }
}

fn at_most(max: usize, found: &[AuditEntry]) -> Result<(), AuditFinding> {
    if found.len() <= max {
        return Ok(());
    }
    Err(AuditFinding::TooMany {
        max,
        found: summaries(found),
    })
}
