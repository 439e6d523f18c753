//! Log of the newest requests.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::check::{AuditFinding, at_most, none_failed, summaries};
use super::entry::AuditEntry;
use super::event::{AuditLevel, event};
use super::mark::{AuditMark, Forgotten};
use super::role::minimal_rules;
use super::settle::{NotSettled, Settle};
use crate::auth::PolicyRule;
use crate::faults::RequestMatcher;

/// Bodies up to this size, in bytes, are kept as long as their entries. Such bodies of deletions
/// hold the preconditions.
const SMALL_BODY_MAX: usize = 1024;

/// Limit of changes listed in the error of a cluster that doesn't settle.
const NAMED_MAX: usize = 10;

/// The newest requests, oldest first.
#[derive(Debug)]
pub struct AuditLog {
    inner: Mutex<Inner>,
    limit: usize,
    bodies_max: usize,
    /// Changes with every write request and every error.
    written: watch::Sender<u64>,
    sink: Mutex<Option<Sink>>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<AuditEntry>,
    /// Number of the next entry.
    next: u64,
    /// Total size of the stored large bodies in bytes.
    body_bytes: usize,
    /// Number of oldest entries whose large body was dropped or never existed.
    bodiless: usize,
}

impl Inner {
    fn push(&mut self, entry: AuditEntry, limit: usize, bodies_max: usize) {
        self.next += 1;
        self.body_bytes += large_body(&entry);
        self.entries.push_back(entry);
        while self.entries.len() > limit
            && let Some(gone) = self.entries.pop_front()
        {
            self.body_bytes -= large_body(&gone);
            self.bodiless = self.bodiless.saturating_sub(1);
        }
        while self.body_bytes > bodies_max
            && let Some(oldest) = self.entries.get_mut(self.bodiless)
        {
            let size = large_body(oldest);
            if size > 0 {
                oldest.body = Bytes::new();
            }
            self.body_bytes -= size;
            self.bodiless += 1;
        }
    }
}

/// Returns the size of an entry's large body in bytes; 0 for a small one.
fn large_body(entry: &AuditEntry) -> usize {
    let size = entry.body.len();
    if size > SMALL_BODY_MAX { size } else { 0 }
}

/// Destination of audit events.
struct Sink {
    writer: Box<dyn Write + Send>,
    level: AuditLevel,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl AuditLog {
    /// Creates a log for the newest `limit` requests, with up to `bodies_max` bytes of bodies.
    pub fn new(limit: usize, bodies_max: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit,
            bodies_max,
            written: watch::channel(0).0,
            sink: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all future requests as lines of `audit.k8s.io/v1` JSON.
    pub fn write_to(&self, writer: impl Write + Send + 'static, level: AuditLevel) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        *sink = Some(Sink {
            writer: Box::new(writer),
            level,
        });
    }

    pub(crate) fn push(&self, entry: AuditEntry) {
        self.write_line(&entry);
        let counts = entry.is_write() || entry.is_error();
        self.lock().push(entry, self.limit, self.bodies_max);
        if counts {
            self.written.send_modify(|count| *count += 1);
        }
    }

    fn write_line(&self, entry: &AuditEntry) {
        let mut guard = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sink) = guard.as_mut() else {
            return;
        };
        let line = format!("{}\n", event(entry, sink.level));
        let written = sink.writer.write_all(line.as_bytes());
        if let Err(err) = written.and_then(|()| sink.writer.flush()) {
            tracing::warn!(%err, "failed to write the audit log, no more requests will be written");
            *guard = None;
        }
    }

    /// Returns all entries in the log.
    pub fn entries(&self) -> Vec<AuditEntry> {
        self.lock().entries.iter().cloned().collect()
    }

    /// Returns the matching entries.
    pub fn matching(&self, wanted: impl Fn(&AuditEntry) -> bool) -> Vec<AuditEntry> {
        let inner = self.lock();
        let found = inner.entries.iter().filter(|e| wanted(e));
        found.cloned().collect()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let mut inner = self.lock();
        *inner = Inner {
            next: inner.next,
            ..Inner::default()
        };
    }

    /// Returns the current position.
    pub fn mark(&self) -> AuditMark {
        AuditMark(self.lock().next)
    }

    /// Returns the matching entries after a mark.
    ///
    /// # Errors
    ///
    /// The log no longer has all entries after the mark.
    pub fn since(
        &self,
        mark: AuditMark,
        wanted: impl Fn(&AuditEntry) -> bool,
    ) -> Result<Vec<AuditEntry>, Forgotten> {
        let inner = self.lock();
        let after = inner.next.saturating_sub(mark.0);
        let kept = u64::try_from(inner.entries.len()).unwrap_or(u64::MAX);
        if after > kept {
            return Err(Forgotten {
                forgotten: after - kept,
            });
        }
        let skip = usize::try_from(kept - after).unwrap_or(usize::MAX);
        let found = inner.entries.iter().skip(skip).filter(|e| wanted(e));
        Ok(found.cloned().collect())
    }

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

    /// Returns the matching requests after a mark that [failed](AuditEntry::is_error). Requests of the
    /// control plane's own actors match only if included.
    ///
    /// # Errors
    ///
    /// The log no longer has all requests after the mark.
    pub fn errors_since(
        &self,
        mark: AuditMark,
        matcher: &RequestMatcher,
    ) -> Result<Vec<AuditEntry>, Forgotten> {
        self.since(mark, |e| {
            e.is_error() && matcher.matches(&e.facts(), &e.body)
        })
    }

    /// Asserts that no request of a client has [failed](AuditEntry::is_error) since a mark. An operator
    /// whose reconciliation fails again and again changes nothing, so it settles.
    ///
    /// # Errors
    ///
    /// Requests failed, or the log is incomplete.
    pub fn expect_no_errors(&self, mark: AuditMark) -> Result<(), AuditFinding> {
        none_failed(&self.errors_since(mark, &RequestMatcher::any())?)
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

    /// Returns the rules of the smallest role that allows all matching requests in the log, except
    /// those rejected for missing permissions. The rules have no object names. Server-side apply
    /// needs `patch`, and `create` where it created the object, just as PUT needs `create` besides
    /// `update`.
    pub fn minimal_rules(&self, client: &RequestMatcher) -> Vec<PolicyRule> {
        minimal_rules(self.matching(|e| e.code != 403 && client.matches(&e.facts(), &e.body)))
    }

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
        let mut writes = self.written.subscribe();
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
