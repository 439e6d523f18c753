//! Log of the newest requests.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::entry::AuditEntry;
use super::event::{AuditLevel, event};

/// Bodies up to this size, in bytes, are kept as long as their entries. Such bodies of deletions
/// hold the preconditions.
const SMALL_BODY_MAX: usize = 1024;

/// The newest requests, oldest first.
#[derive(Debug)]
pub struct AuditLog {
    inner: Mutex<Inner>,
    limit: usize,
    bodies_max: usize,
    /// Changes with every write request.
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

/// A position in the log, used to query later entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditMark(u64);

/// The log no longer has all entries after a mark: raise `ServerConfig::audit_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log no longer covers the mark: {forgotten} requests were dropped")]
pub struct Forgotten {
    /// Number of dropped requests after the mark.
    pub forgotten: u64,
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
        let is_write = entry.is_write();
        self.lock().push(entry, self.limit, self.bodies_max);
        if is_write {
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

    /// Subscribes to write requests.
    pub(super) fn writes(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }
}
