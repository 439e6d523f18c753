//! Logs the API server's health: one line when it becomes unusable, and one when it recovers.
//!
//! Callers retry silently, with back-off. This log reports faults of the server, the credentials
//! and the permissions once for all clients of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::fault_log::FaultLog;
use crate::resource::GroupResource;
use crate::token_bucket::TokenBucket;

pub(crate) use right::Right;

mod right;

/// Maximum burst of log lines.
const LINES_BURST: u32 = 20;
/// Sustained log rate while a fault flaps.
const LINES_PER_SECOND: f64 = 1.0 / 30.0;
/// Maximum number of missing permissions tracked; each namespace has its own.
const MISSING_RIGHTS_MAX: usize = 1000;

/// Logs faults that affect more than one request, detected from the results of requests.
///
/// Logs the start and the end of each fault: the server is unreachable, rejects the credentials,
/// fails lists and watches, or denies a permission.
#[derive(Debug, Default)]
pub struct ApiHealthLog {
    state: Arc<Mutex<State>>,
    skips_rights: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The fault that affects every request.
    trouble: FaultLog<TroubleKind>,
    /// The collections whose lists or watches fail.
    failing: BTreeSet<GroupResource>,
    failure: FaultLog,
    missing: BTreeMap<Right, FaultLog>,
    /// True after the server has rejected a shard selector.
    shards_rejected: bool,
    lines: Option<Lines>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TroubleKind {
    Unreachable,
    Untrusted,
    Unauthorized,
}

/// The rate limit of log lines.
#[derive(Debug)]
struct Lines {
    bucket: TokenBucket,
    begin: Instant,
    /// Number of lines withheld since the last logged one.
    withheld: u64,
}

impl ApiHealthLog {
    /// Returns a handle with the same state for a client that logs missing permissions itself. The
    /// handle records only faults of the server and the credentials.
    #[must_use]
    pub fn without_rights(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            skips_rights: true,
        }
    }

    /// Records a successful request.
    pub(crate) fn succeeded(&self, right: &Right) {
        let mut state = self.state();
        state.reached();
        self.granted(&mut state, right);
        if right.is_of_collection() {
            state.read(right.resource);
        }
    }

    /// Records a failed request.
    pub(crate) fn failed(&self, right: &Right, err: &Error) {
        let mut state = self.state();
        if let Some(kind) = TroubleKind::of(err) {
            state.troubled(kind, err);
            return;
        }
        if err.status().is_none() {
            // The request was not sent, or the response is not the server's fault.
            return;
        }
        state.reached();
        if err.is_missing_right() {
            if !self.skips_rights {
                state.denied(right, err);
            }
            return;
        }
        self.granted(&mut state, right);
        if !right.is_of_collection() {
            return;
        }
        if err.is_server_failure() {
            state.failed_to_read(right, err);
        } else {
            state.read(right.resource);
        }
    }

    /// Records a request that is still pending after this time. Either no response came, or every
    /// response requested a later retry.
    pub(crate) fn unanswered(&self, right: &Right, after: Duration) {
        if right.is_of_collection() {
            let seconds = after.as_secs();
            let error = format!("no response, or only Retry-After responses, for {seconds} s");
            self.state().failed_to_read(right, &error);
        }
    }

    /// Returns true after the server has rejected a shard selector.
    pub(crate) fn shards_are_rejected(&self) -> bool {
        self.state().shards_rejected
    }

    /// Records that the server rejects shard selectors. Logs that once.
    pub(crate) fn shards_rejected(&self, error: &Error) {
        let mut state = self.state();
        if std::mem::replace(&mut state.shards_rejected, true) {
            return;
        }
        state.log(|withheld| {
            tracing::warn!(
                parent: None,
                %error, withheld,
                "API server rejects the shard selector, reading the objects of all shards and \
                 dropping the others; sets are served as before"
            );
        });
    }

    fn granted(&self, state: &mut State, right: &Right) {
        if !self.skips_rights {
            state.granted(right);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TroubleKind {
    fn of(err: &Error) -> Option<Self> {
        if err.is_unauthorized() {
            Some(Self::Unauthorized)
        } else if err.is_tls() {
            Some(Self::Untrusted)
        } else {
            err.is_transport().then_some(Self::Unreachable)
        }
    }
}

impl State {
    fn troubled(&mut self, kind: TroubleKind, error: &Error) {
        if !self.trouble.begin(kind) {
            return;
        }
        self.log(|withheld| match kind {
            TroubleKind::Unreachable => tracing::warn!(
                parent: None,
                %error, withheld,
                "API server unreachable, trying again; check that it is up and that its address is right"
            ),
            TroubleKind::Untrusted => tracing::warn!(
                parent: None,
                %error, withheld,
                "no secure connection to the API server, trying again; check the server's and \
                 the client's certificates, their expiry, and the certificate authority"
            ),
            TroubleKind::Unauthorized => tracing::warn!(
                parent: None,
                %error, withheld,
                "API server rejects the credentials, trying again; check the token or \
                 client certificate, and when it expires"
            ),
        });
    }

    fn reached(&mut self) {
        let Some((kind, after)) = self.trouble.end() else {
            return;
        };
        self.log(|withheld| match kind {
            TroubleKind::Unauthorized => {
                tracing::info!(parent: None, %after, withheld, "API server accepts the credentials again");
            }
            TroubleKind::Unreachable | TroubleKind::Untrusted => {
                tracing::info!(parent: None, %after, withheld, "API server reachable again");
            }
        });
    }

    fn denied(&mut self, right: &Right, error: &Error) {
        if self.missing.contains_key(right) || self.missing.len() >= MISSING_RIGHTS_MAX {
            return;
        }
        self.missing.entry(right.clone()).or_default().begin(());
        self.log(|withheld| {
            tracing::warn!(
                parent: None,
                permission = %right, %error, withheld,
                "permission is missing, trying again; grant this user a role with the rule {}",
                right.rule()
            );
        });
    }

    fn granted(&mut self, right: &Right) {
        let fault = self.missing.remove(right);
        if let Some(((), after)) = fault.and_then(|mut fault| fault.end()) {
            self.log(|withheld| tracing::info!(parent: None, permission = %right, %after, withheld, "permission is granted"));
        }
    }

    fn failed_to_read(&mut self, right: &Right, error: &dyn Display) {
        self.failing.insert(right.resource);
        if !self.failure.begin(()) {
            return;
        }
        self.log(|withheld| {
            tracing::warn!(
                parent: None,
                request = %right, %error, withheld,
                "API server does not serve lists or watches, trying again; see its log"
            );
        });
    }

    fn read(&mut self, resource: GroupResource) {
        self.failing.remove(&resource);
        if self.failing.is_empty()
            && let Some(((), after)) = self.failure.end()
        {
            self.log(|withheld| {
                tracing::info!(
                    parent: None,
                    %after, withheld,
                    "API server serves lists and watches again"
                );
            });
        }
    }

    /// Logs a line unless the rate limit withholds it. The line belongs to no sync. Its argument is
    /// the number of lines withheld before it, if any.
    fn log(&mut self, line: impl FnOnce(Option<u64>)) {
        let lines = self.lines.get_or_insert_with(|| Lines {
            bucket: TokenBucket::new(LINES_PER_SECOND, LINES_BURST),
            begin: Instant::now(),
            withheld: 0,
        });
        if lines.bucket.try_accept(lines.begin.elapsed()) {
            let withheld = std::mem::take(&mut lines.withheld);
            line(Some(withheld).filter(|count| *count > 0));
        } else {
            lines.withheld += 1;
        }
    }
}

#[cfg(test)]
mod tests;
