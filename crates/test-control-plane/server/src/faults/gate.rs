//! Gates: a test holds requests and releases them in the order it needs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::facts::RequestFacts;
use super::matcher::RequestMatcher;

/// Position of a gate in a request's processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatePoint {
    /// Before the request is processed.
    BeforeCommit,
    /// After the request was processed, before the response.
    AfterCommit,
}

/// A gate that holds requests. It lasts until it is opened or its last handle is dropped. Requests
/// pass in the order of arrival. A request whose client gives up leaves the gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Handle>);

/// The tests' handle; its drop opens the gate.
#[derive(Debug)]
struct Handle(Arc<GateState>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// The shared state on which requests wait.
#[derive(Debug)]
pub(crate) struct GateState {
    matcher: RequestMatcher,
    point: GatePoint,
    inner: Mutex<Inner>,
    /// Changes with every update.
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    open: bool,
    next_ticket: u64,
    /// Number of future requests that may pass.
    spare: u64,
    waiting: BTreeMap<u64, RequestFacts>,
}

impl Gate {
    pub(super) fn new(matcher: RequestMatcher, point: GatePoint) -> (Self, Arc<GateState>) {
        let state = Arc::new(GateState {
            matcher,
            point,
            inner: Mutex::default(),
            moved: watch::channel(0).0,
        });
        (Self(Arc::new(Handle(Arc::clone(&state)))), state)
    }

    /// Returns the waiting requests in the order of arrival.
    pub fn waiting(&self) -> Vec<RequestFacts> {
        self.0.0.lock().waiting.values().cloned().collect()
    }

    /// Waits until at least `count` requests wait, and returns them.
    pub async fn arrived(&self, count: usize) -> Vec<RequestFacts> {
        let mut moved = self.0.0.moved.subscribe();
        loop {
            let waiting = self.waiting();
            if waiting.len() >= count || moved.changed().await.is_err() {
                return waiting;
            }
        }
    }

    /// Releases the first waiting request, or the next to arrive.
    pub fn release(&self) {
        let state = &self.0.0;
        let mut inner = state.lock();
        if inner.waiting.pop_first().is_none() {
            inner.spare += 1;
        }
        drop(inner);
        state.notify();
    }

    /// Releases the first waiting request that matches. Returns true if there was one.
    pub fn release_matching(&self, wanted: impl Fn(&RequestFacts) -> bool) -> bool {
        let state = &self.0.0;
        let mut inner = state.lock();
        let found = inner
            .waiting
            .iter()
            .find_map(|(ticket, facts)| wanted(facts).then_some(*ticket));
        if let Some(ticket) = found {
            inner.waiting.remove(&ticket);
        }
        drop(inner);
        state.notify();
        found.is_some()
    }

    /// Releases all current and future requests.
    pub fn open(&self) {
        self.0.0.open();
    }
}

impl GateState {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    pub(crate) fn open(&self) {
        let mut inner = self.lock();
        inner.open = true;
        inner.waiting.clear();
        drop(inner);
        self.notify();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().open
    }

    pub(crate) fn point(&self) -> GatePoint {
        self.point
    }

    pub(crate) fn matches(&self, facts: &RequestFacts, body: &[u8]) -> bool {
        self.matcher.matches(facts, body)
    }

    /// Waits until the request may pass.
    pub(crate) async fn pass(&self, facts: &RequestFacts) {
        let mut moved = self.moved.subscribe();
        let Some(ticket) = self.take_ticket(facts) else {
            return;
        };
        let _leave = Leave { gate: self, ticket };
        while self.lock().waiting.contains_key(&ticket) {
            if moved.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns a place in the queue; `None` if the request may pass immediately.
    fn take_ticket(&self, facts: &RequestFacts) -> Option<u64> {
        let mut inner = self.lock();
        if inner.open {
            return None;
        }
        if inner.spare > 0 {
            inner.spare -= 1;
            return None;
        }
        let ticket = inner.next_ticket;
        inner.next_ticket += 1;
        inner.waiting.insert(ticket, facts.clone());
        drop(inner);
        self.notify();
        Some(ticket)
    }
}

/// Leaves the queue on drop, even if the request is cancelled.
struct Leave<'a> {
    gate: &'a GateState,
    ticket: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.gate.lock().waiting.remove(&self.ticket).is_some() {
            self.gate.notify();
        }
    }
}
