//! Connections: all of them break, and new ones may be refused for a while.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use kube_test_control_plane_store::clock::later;

/// The connections of clients to the control plane: what is on its way is lost when they break.
#[derive(Debug, Default)]
pub struct Outage {
    state: Mutex<State>,
    /// Told when connections begin or cease to be refused.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Cancelled when the connections break.
    connections: CancellationToken,
    refused: Refused,
}

/// Whether connections are refused.
#[derive(Clone, Copy, Debug, Default)]
enum Refused {
    #[default]
    No,
    Until(Instant),
    Yes,
}

impl Outage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks every connection: requests on their way get no answer, watches end with an error.
    pub fn break_connections(&self) {
        let old = std::mem::take(&mut self.lock().connections);
        old.cancel();
    }

    /// Breaks every connection and refuses new ones for so long.
    pub fn begin_for(&self, time: Duration) {
        self.refuse(Refused::Until(later(Instant::now(), time)));
        self.break_connections();
    }

    /// Breaks every connection and refuses new ones until [`end`](Self::end).
    pub fn begin(&self) {
        self.refuse(Refused::Yes);
        self.break_connections();
    }

    /// Accepts connections again.
    pub fn end(&self) {
        self.refuse(Refused::No);
    }

    fn refuse(&self, refused: Refused) {
        self.lock().refused = refused;
        self.changed.notify_waiters();
    }

    /// Waits until connections are refused.
    pub(crate) async fn begun(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_on() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until connections are accepted.
    pub(crate) async fn over(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let refused = self.lock().refused;
            match refused {
                Refused::No => return,
                Refused::Yes => changed.await,
                Refused::Until(end) if end <= Instant::now() => return,
                Refused::Until(end) => {
                    tokio::select! {
                        () = changed => {}
                        () = sleep_until(end) => {}
                    }
                }
            }
        }
    }

    /// Whether connections are refused now.
    pub fn is_on(&self) -> bool {
        match self.lock().refused {
            Refused::No => false,
            Refused::Yes => true,
            Refused::Until(end) => Instant::now() < end,
        }
    }

    /// A connection that begins now: cancelled when it breaks, none if it is refused.
    pub fn connect(&self) -> Option<CancellationToken> {
        (!self.is_on()).then(|| self.lock().connections.clone())
    }
}
