//! The log of the API server's health: one line when it can't be used, and one when it can again.
//!
//! Callers retry silently, with back-off. Faults of the server, the credentials and the rights are
//! logged here, once for all the clients of a process.

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

/// The most log lines at once.
const LINES_BURST: u32 = 20;
/// Sustained log rate while a fault flaps.
const LINES_PER_SECOND: f64 = 1.0 / 30.0;
/// The most missing rights that are remembered; each namespace has its own.
const MISSING_RIGHTS_MAX: usize = 1000;

/// The log of faults that concern more than one request, found by how requests end.
///
/// Logs the begin and the end of each: the server can't be reached, it accepts no credentials, its
/// lists and watches fail, a right is missing.
#[derive(Debug, Default)]
pub struct ApiHealthLog {
    state: Arc<Mutex<State>>,
    skips_rights: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The fault that keeps every request from being answered.
    trouble: FaultLog<TroubleKind>,
    /// The collections that the server fails to list or watch.
    failing: BTreeSet<GroupResource>,
    failure: FaultLog,
    missing: BTreeMap<Right, FaultLog>,
    lines: Option<Lines>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TroubleKind {
    Unreachable,
    Untrusted,
    Unauthorized,
}

/// The limit of log lines.
#[derive(Debug)]
struct Lines {
    bucket: TokenBucket,
    begin: Instant,
    /// Lines that were not logged, since the last one that was.
    withheld: u64,
}

impl ApiHealthLog {
    /// The same state for a client that logs missing rights itself: this handle records faults of
    /// the server and the credentials alone.
    #[must_use]
    pub fn without_rights(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            skips_rights: true,
        }
    }

    /// Records a request that succeeded.
    pub(crate) fn succeeded(&self, right: &Right) {
        let mut state = self.state();
        state.reached();
        self.granted(&mut state, right);
        if right.is_of_collection() {
            state.read(right.resource);
        }
    }

    /// Records a request that failed.
    pub(crate) fn failed(&self, right: &Right, err: &Error) {
        let mut state = self.state();
        if let Some(kind) = TroubleKind::of(err) {
            state.troubled(kind, err);
            return;
        }
        if err.status().is_none() {
            // It was not sent, or the answer is not the server's fault.
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

    /// Records a request that has waited this long and goes on waiting: each answer so far asked
    /// for a retry later, or there was none.
    pub(crate) fn unanswered(&self, right: &Right, after: Duration) {
        if right.is_of_collection() {
            let seconds = after.as_secs();
            let error = format!("only told to wait, or nothing at all, for {seconds} s");
            self.state().failed_to_read(right, &error);
        }
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
        self.tell(|withheld| match kind {
            TroubleKind::Unreachable => tracing::warn!(
                parent: None,
                %error, withheld,
                "API server unreachable, trying again; check that it is up and that its address is right"
            ),
            TroubleKind::Untrusted => tracing::warn!(
                parent: None,
                %error, withheld,
                "no secure connection to the API server, trying again; check its certificate and \
                 ours, when they expire, and the certificate authority"
            ),
            TroubleKind::Unauthorized => tracing::warn!(
                parent: None,
                %error, withheld,
                "API server does not accept the credentials, trying again; check the token or \
                 client certificate, and when it expires"
            ),
        });
    }

    fn reached(&mut self) {
        let Some((kind, after)) = self.trouble.end() else {
            return;
        };
        self.tell(|withheld| match kind {
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
        self.tell(|withheld| {
            tracing::warn!(
                parent: None,
                %right, %error, withheld,
                "right is missing, trying again; grant this user a role with the rule {}",
                right.rule()
            );
        });
    }

    fn granted(&mut self, right: &Right) {
        let fault = self.missing.remove(right);
        if let Some(((), after)) = fault.and_then(|mut fault| fault.end()) {
            self.tell(|withheld| tracing::info!(parent: None, %right, %after, withheld, "right is granted"));
        }
    }

    fn failed_to_read(&mut self, right: &Right, error: &dyn Display) {
        self.failing.insert(right.resource);
        if !self.failure.begin(()) {
            return;
        }
        self.tell(|withheld| {
            tracing::warn!(
                parent: None,
                request = %right, %error, withheld,
                "API server fails to answer, trying again; see its log"
            );
        });
    }

    fn read(&mut self, resource: GroupResource) {
        self.failing.remove(&resource);
        if self.failing.is_empty()
            && let Some(((), after)) = self.failure.end()
        {
            self.tell(|withheld| tracing::info!(parent: None, %after, withheld, "API server answers again"));
        }
    }

    /// Logs a line, which belongs to no sync, unless the limit withholds it. The line gets the number
    /// of lines withheld before it, if any.
    fn tell(&mut self, line: impl FnOnce(Option<u64>)) {
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
