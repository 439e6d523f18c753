//! What tests expect of requests.

use super::entry::AuditEntry;
use super::log::{AuditLog, AuditMark, Forgotten};
use crate::faults::RequestMatcher;

/// Requests that a test didn't expect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditFinding {
    /// Too many of them.
    #[error("{} requests instead of at most {max}:{}", found.len(), lines(found))]
    TooMany {
        /// How many would have been right.
        max: usize,
        /// The summaries of all of them.
        found: Vec<String>,
    },
    /// They were not among those that are allowed.
    #[error("{} requests that are not allowed:{}", found.len(), lines(found))]
    NotAllowed {
        /// Their summaries.
        found: Vec<String>,
    },
    /// It can't be told.
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
    /// The requests after a mark that match and could have changed something, whatever came of
    /// them. As everywhere, those of the control plane's own actors only match if included.
    ///
    /// # Errors
    ///
    /// Some of the requests after the mark are forgotten.
    pub fn writes_since(
        &self,
        mark: AuditMark,
        matcher: &RequestMatcher,
    ) -> Result<Vec<AuditEntry>, Forgotten> {
        self.since(mark, |e| {
            e.is_write() && matcher.matches(&e.facts(), &e.body)
        })
    }

    /// Expects no write after a mark.
    ///
    /// # Errors
    ///
    /// There were some, or it can't be told.
    pub fn expect_no_writes(
        &self,
        mark: AuditMark,
        matcher: &RequestMatcher,
    ) -> Result<(), AuditFinding> {
        let found = self.writes_since(mark, matcher)?;
        at_most(0, &found)
    }

    /// Expects at most so many requests after a mark, reads included unless the matcher names
    /// verbs.
    ///
    /// # Errors
    ///
    /// There were more, or it can't be told.
    pub fn expect_at_most(
        &self,
        mark: AuditMark,
        max: usize,
        matcher: &RequestMatcher,
    ) -> Result<(), AuditFinding> {
        let found = self.since(mark, |e| matcher.matches(&e.facts(), &e.body))?;
        at_most(max, &found)
    }

    /// Expects that a client sent nothing after a mark but what is allowed.
    ///
    /// # Errors
    ///
    /// It sent something else, or it can't be told.
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
