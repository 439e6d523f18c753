//! Outages: all connections break, and new ones may be refused for a while.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use kube_test_control_plane_store::clock::later;

/// The client connections of the control plane. Requests in flight are lost when they break.
#[derive(Debug, Default)]
pub struct Outage {
    state: Mutex<State>,
    /// Notified of the start and end of an outage.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Cancelled when the connections break.
    connections: CancellationToken,
    refused: Refused,
}

/// State of refusing connections.
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

    /// Breaks all connections: requests in flight get no response, and watches end with an error.
    pub fn break_connections(&self) {
        let old = std::mem::take(&mut self.lock().connections);
        old.cancel();
    }

    /// Breaks all connections and refuses new ones for `time`.
    pub fn begin_for(&self, time: Duration) {
        self.refuse(Refused::Until(later(Instant::now(), time)));
        self.break_connections();
    }

    /// Breaks all connections and refuses new ones until [`end`](Self::end).
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

    /// Waits for the start of an outage.
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

    /// Waits for the end of an outage.
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

    /// Reports whether connections are refused now.
    pub fn is_on(&self) -> bool {
        match self.lock().refused {
            Refused::No => false,
            Refused::Yes => true,
            Refused::Until(end) => Instant::now() < end,
        }
    }

    /// Registers a new connection. Returns the token cancelled when it breaks, or `None` during an
    /// outage.
    pub fn connect(&self) -> Option<CancellationToken> {
        (!self.is_on()).then(|| self.lock().connections.clone())
    }
}
