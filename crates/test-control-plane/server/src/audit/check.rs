//! Assertions on the logged requests.

use super::entry::AuditEntry;
use super::mark::Forgotten;

/// Unexpected requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// Requests failed.
    #[error("{} requests failed:{}", found.len(), lines(found))]
    Failed {
        /// Their summaries, with the reason and the text of the error.
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

pub(super) fn summaries(entries: &[AuditEntry]) -> Vec<String> {
    entries.iter().map(AuditEntry::summary).collect()
}

/// Asserts that there are no failed requests.
pub(super) fn none_failed(found: &[AuditEntry]) -> Result<(), AuditFinding> {
    if found.is_empty() {
        return Ok(());
    }
    let line = |entry: &AuditEntry| {
        let (summary, reason, message) = (entry.summary(), &entry.reason, &entry.message);
        format!("{summary} {reason}: {message}")
    };
    Err(AuditFinding::Failed {
        found: found.iter().map(line).collect(),
    })
}

/// Asserts that there are at most `max` entries.
pub(super) fn at_most(max: usize, found: &[AuditEntry]) -> Result<(), AuditFinding> {
    if found.len() <= max {
        return Ok(());
    }
    Err(AuditFinding::TooMany {
        max,
        found: summaries(found),
    })
}
