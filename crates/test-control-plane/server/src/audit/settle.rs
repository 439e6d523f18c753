//! Waiting until nothing changes any more.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::entry::AuditEntry;
use super::log::AuditLog;
use crate::faults::RequestMatcher;

/// What it means that a cluster has settled.
#[derive(Clone, Debug)]
pub struct Settle {
    /// Nothing has changed for so long.
    pub quiet: Duration,
    /// It must have happened within so long.
    pub limit: Duration,
    /// Changes that don't count. By default those of leases, which are renewed for ever.
    pub ignore: Vec<RequestMatcher>,
}

/// It didn't settle in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it did not settle within {limit:?}; the newest changes:{}", lines(.changes))]
pub struct NotSettled {
    /// How long it had.
    pub limit: Duration,
    /// The summaries of the newest changes, oldest first.
    pub changes: Vec<String>,
}

/// How many changes are named when it didn't settle.
const NAMED_MAX: usize = 10;

fn lines(changes: &[String]) -> String {
    changes
        .iter()
        .fold(String::new(), |text, line| text + "\n  " + line)
}

impl Settle {
    /// Nothing has changed for so long, within an hour.
    pub fn quiet_for(quiet: Duration) -> Self {
        Self {
            quiet,
            limit: Duration::from_secs(3600),
            ignore: vec![RequestMatcher::any().resource("leases").include_actors()],
        }
    }

    /// Sets within how long it must have happened.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Also leaves these changes out.
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
    /// Waits until nothing has changed for a while; actors' changes count. It follows tokio's
    /// time, so that under paused time it takes none. Faults that hold requests up are no change:
    /// a cluster that waits at a gate has settled.
    ///
    /// # Errors
    ///
    /// It didn't settle in time.
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
            // What is forgotten already may have been a change.
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
