//! The connections that are open: how many there may be, and which goes first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How many connections there may be. When one more comes, the one whose last request began or
/// ended before those of all others goes, so that clients which hold connections keep nobody else
/// out, also not by requests that wait.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// How long a connection may stay open without a request.
///
/// Upstream: `IdleTimeout` of the secure server.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(90);

/// The connections that are open.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Connection>,
}

struct Connection {
    /// When the last request began or ended.
    active: Instant,
    /// How many requests are being answered.
    requests: usize,
    close: CancellationToken,
}

/// One connection; it is forgotten when this is dropped.
pub(super) struct Slot {
    connections: Connections,
    number: u64,
    close: CancellationToken,
}

/// One request of a connection; it has ended when this is dropped.
pub(super) struct Running(Arc<Slot>);

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection in. If there are too many, another one is told to close.
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
    /// Notes that a request has begun.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.change(|connection| connection.requests += 1);
        Running(Arc::clone(self))
    }

    /// Waits until the connection has to go: it was idle for too long, or there are too many.
    pub(super) async fn worn_out(&self) {
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

    const AT_ONCE: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_is_worn_out() {
        let slot = Arc::new(Connections::default().admit());
        let begin = Instant::now();
        slot.worn_out().await;
        assert_eq!(begin.elapsed(), IDLE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_keep_it_open() {
        let slot = Arc::new(Connections::default().admit());
        let running = slot.begin();
        assert!(timeout(IDLE_MAX * 3, slot.worn_out()).await.is_err());
        drop(running);
        let begin = Instant::now();
        slot.worn_out().await;
        assert_eq!(begin.elapsed(), IDLE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn one_too_many_ends_the_one_that_did_nothing_for_longest() {
        let connections = Connections::default();
        let mut slots = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            slots.push(Arc::new(connections.admit()));
            advance(AT_ONCE).await;
        }
        // The first had a request, the second has one that waits.
        drop(slots[0].begin());
        let waiting = slots[1].begin();
        let newest = connections.admit();
        assert!(timeout(AT_ONCE, slots[0].worn_out()).await.is_err());
        assert!(timeout(AT_ONCE, slots[1].worn_out()).await.is_err());
        assert!(timeout(AT_ONCE, slots[2].worn_out()).await.is_ok());
        assert_eq!(connections.count(), CONNECTIONS_MAX + 1);
        // Each further one ends another one, and in the end that whose request waits still.
        let mut others = Vec::new();
        for _ in 2..CONNECTIONS_MAX {
            advance(AT_ONCE).await;
            others.push(connections.admit());
        }
        assert!(timeout(AT_ONCE, slots[1].worn_out()).await.is_err());
        others.push(connections.admit());
        others.push(connections.admit());
        assert!(timeout(AT_ONCE, slots[1].worn_out()).await.is_ok());
        assert!(timeout(AT_ONCE, others[0].worn_out()).await.is_err());
        drop((waiting, newest, others));
        slots.clear();
        assert_eq!(connections.count(), 0);
    }
}
