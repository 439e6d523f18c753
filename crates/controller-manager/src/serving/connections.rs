//! Open connections, with the limit of their number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Maximum number of connections. Beyond it, the connection with the oldest activity (start or end
/// of a request) is closed, so that idle clients, or clients with pending requests, can't lock out
/// others.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// Maximum time that a connection may stay idle.
///
/// Upstream: `IdleTimeout` of the secure server.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(90);

/// All open connections.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Connection>,
}

struct Connection {
    /// Start or end of the latest request.
    active: Instant,
    /// Number of requests in progress.
    requests: usize,
    close: CancellationToken,
}

/// One connection, removed on drop.
pub(super) struct Slot {
    connections: Connections,
    number: u64,
    close: CancellationToken,
}

/// One request of a connection, finished on drop.
pub(super) struct Running(Arc<Slot>);

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Beyond the limit, closes the one with the oldest activity.
    pub(super) fn admit(&self) -> Slot {
        let close = CancellationToken::new();
        let mut open = self.open();
        if open.all.len() >= CONNECTIONS_MAX {
            let staying = open.all.values().filter(|it| !it.close.is_cancelled());
            if let Some(oldest) = staying.min_by_key(|it| it.active) {
                oldest.close.cancel();
            }
        }
        let number = open.next;
        open.next += 1;
        let connection = Connection {
            active: Instant::now(),
            requests: 0,
            close: close.clone(),
        };
        open.all.insert(number, connection);
        drop(open);
        Slot {
            connections: self.clone(),
            number,
            close,
        }
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.open().all.len()
    }
}

impl Slot {
    /// Records the start of a request.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.change(|connection| connection.requests += 1);
        Running(Arc::clone(self))
    }

    /// Waits until the connection must close: it was idle for too long, or exceeds the limit.
    pub(super) async fn must_close(&self) {
        loop {
            let until = {
                let open = self.connections.open();
                match open.all.get(&self.number) {
                    Some(connection) if connection.requests == 0 => connection.active + IDLE_MAX,
                    Some(_) => Instant::now() + IDLE_MAX,
                    None => return,
                }
            };
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = self.close.cancelled() => return,
                () = sleep_until(until) => {}
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Connection)) {
        let mut open = self.connections.open();
        if let Some(connection) = open.all.get_mut(&self.number) {
            connection.active = Instant::now();
            change(connection);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.open().all.remove(&self.number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|connection| connection.requests -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn idle_connection_is_closed() {
        let slot = Arc::new(Connections::default().admit());
        let begin = Instant::now();
        slot.must_close().await;
        assert_eq!(begin.elapsed(), IDLE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_keep_a_connection_open() {
        let slot = Arc::new(Connections::default().admit());
        let running = slot.begin();
        assert!(timeout(IDLE_MAX * 3, slot.must_close()).await.is_err());
        drop(running);
        let begin = Instant::now();
        slot.must_close().await;
        assert_eq!(begin.elapsed(), IDLE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn excess_connection_closes_the_least_recently_active() {
        let connections = Connections::default();
        let mut slots = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            slots.push(Arc::new(connections.admit()));
            advance(MOMENT).await;
        }
        // The first had a request, the second has a pending one.
        drop(slots[0].begin());
        let waiting = slots[1].begin();
        let newest = connections.admit();
        assert!(timeout(MOMENT, slots[0].must_close()).await.is_err());
        assert!(timeout(MOMENT, slots[1].must_close()).await.is_err());
        assert!(timeout(MOMENT, slots[2].must_close()).await.is_ok());
        assert_eq!(connections.count(), CONNECTIONS_MAX + 1);
        // Each further connection closes another, and finally the one with the pending request.
        let mut others = Vec::new();
        for _ in 2..CONNECTIONS_MAX {
            advance(MOMENT).await;
            others.push(connections.admit());
        }
        assert!(timeout(MOMENT, slots[1].must_close()).await.is_err());
        others.push(connections.admit());
        others.push(connections.admit());
        assert!(timeout(MOMENT, slots[1].must_close()).await.is_ok());
        assert!(timeout(MOMENT, others[0].must_close()).await.is_err());
        drop((waiting, newest, others));
        slots.clear();
        assert_eq!(connections.count(), 0);
    }
}
