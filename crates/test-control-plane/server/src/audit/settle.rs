//! Waits until changes stop.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::entry::AuditEntry;
use super::log::AuditLog;
use crate::faults::RequestMatcher;

/// Conditions for a settled cluster.
#[derive(Clone, Debug)]
pub struct Settle {
    /// Required time without changes.
    pub quiet: Duration,
    /// Time limit.
    pub limit: Duration,
    /// Ignored changes. By default those of leases, which are renewed indefinitely.
    pub ignore: Vec<RequestMatcher>,
}

/// The cluster did not settle in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster did not settle within {limit:?}; the newest changes:{}", lines(.changes))]
pub struct NotSettled {
    /// The time limit.
    pub limit: Duration,
    /// The summaries of the latest changes, oldest first.
    pub changes: Vec<String>,
}

/// Limit of changes listed in the error.
const NAMED_MAX: usize = 10;

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
        }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Also ignores matching changes.
    #[must_use]
    pub fn ignore(mut self, matcher: RequestMatcher) -> Self {
        self.ignore.push(matcher);
        self
    }

    fn counts(&self, entry: &AuditEntry) -> bool {
        entry.is_change() && {
            let facts = entry.facts();
            !self.ignore.iter().any(|m| m.matches(&facts, &entry.body))
        }
    }
}

impl AuditLog {
    /// Waits until there were no changes for a while, including those of actors. It uses tokio's
    /// clock, so under paused time it takes no real time. Requests held by faults are not changes:
    /// a cluster that waits at a gate has settled.
    ///
    /// # Errors
    ///
    /// The cluster did not settle in time.
    pub async fn settle(&self, settle: &Settle) -> Result<(), NotSettled> {
        let begin = Instant::now();
        let limit = begin + settle.limit;
        let mut writes = self.writes();
        let mut mark = self.mark();
        let mut quiet_until = begin + settle.quiet;
        loop {
            if quiet_until > limit {
                let recent = self.matching(|entry| settle.counts(entry));
                let skip = recent.len().saturating_sub(NAMED_MAX);
                return Err(NotSettled {
                    limit: settle.limit,
                    changes: recent.iter().skip(skip).map(AuditEntry::summary).collect(),
                });
            }
            let Ok(Ok(())) = timeout_at(quiet_until, writes.changed()).await else {
                return Ok(());
            };
            let next = self.mark();
            // A dropped entry may have been a change.
            let changed = self
                .since(mark, |entry| settle.counts(entry))
                .map_or(true, |found| !found.is_empty());
            mark = next;
            if changed {
                quiet_until = Instant::now() + settle.quiet;
            }
        }
    }
}
