//! The event loop of an actor: it delivers writes and orders, and runs due work.

mod agenda;
mod incarnations;

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::server::ActorServer;
pub(super) use agenda::Agenda;
pub(super) use incarnations::{Incarnations, identity};

/// Limit of events in one read.
const BATCH_MAX: usize = 500;

/// Requests that run alongside the actor; `None` if they failed.
pub(super) type Work<T> = BoxFuture<'static, Option<T>>;

/// An actor observes every write and acts on due objects. Its work runs concurrently, one task per
/// object, so it never delays writes and orders.
pub(super) trait Actor: Send {
    /// A test's order to the actor.
    type Order: Send;

    /// Result of completed work.
    type Done: Send;

    /// Processes a write.
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda);

    /// Starts the due work for an object. If the work fails, the object is retried after a delay.
    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Self::Done>>;

    /// Processes the result of work for an object.
    fn done(&mut self, _key: &Key, _done: Self::Done, _agenda: &mut Agenda) {}

    /// Carries out an order; many actors have none.
    fn obey(&mut self, _order: Self::Order, _agenda: &mut Agenda) {}

    /// Clears all state from past writes. The log was truncated, so all existing objects are
    /// replayed, but no deletions.
    fn reset(&mut self);

    /// Called after all objects were replayed.
    fn replayed(&mut self, _agenda: &mut Agenda) {}
}

/// Sends orders to an actor.
#[derive(Debug)]
pub(super) struct Orders<O> {
    actor: &'static str,
    sender: mpsc::UnboundedSender<Order<O>>,
    stopping: CancellationToken,
}

/// An order, and the channel that confirms it.
#[derive(Debug)]
struct Order<O> {
    order: O,
    taken: oneshot::Sender<()>,
}

impl<O> Clone for Orders<O> {
    fn clone(&self) -> Self {
        Self {
            actor: self.actor,
            sender: self.sender.clone(),
            stopping: self.stopping.clone(),
        }
    }
}

impl<O> Orders<O> {
    /// Sends an order without waiting for its execution. The order is dropped if the actor has
    /// stopped.
    pub(super) fn send(&self, order: O) {
        let (taken, _) = oneshot::channel();
        let _ = self.sender.send(Order { order, taken });
    }

    /// Sends an order, and returns once the actor has processed it or the server stops.
    ///
    /// # Panics
    ///
    /// Panics if the actor has panicked, since the test would wait forever.
    pub(super) async fn give(&self, order: O) {
        let (taken, done) = oneshot::channel();
        let is_taken = self.sender.send(Order { order, taken }).is_ok() && done.await.is_ok();
        let actor = self.actor;
        assert!(
            is_taken || self.stopping.is_cancelled(),
            "the {actor} can't process orders: it has panicked"
        );
    }
}

/// Starts an actor and returns the channel for its orders.
pub(super) fn spawn<A: Actor + 'static>(
    name: &'static str,
    actor: A,
    server: &ActorServer,
    tasks: &mut JoinSet<()>,
) -> Orders<A::Order> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let orders = Orders {
        actor: name,
        sender,
        stopping: server.stopping(),
    };
    let work = AssertUnwindSafe(run(actor, server.clone(), receiver)).catch_unwind();
    tasks.spawn(async move {
        if let Err(panic) = work.await {
            tracing::error!(actor = name, "actor panicked and has stopped");
            resume_unwind(panic);
        }
    });
    orders
}

/// Work for an object.
struct Task<T> {
    key: Key,
    work: Work<T>,
}

impl<T> Future for Task<T> {
    type Output = (Key, Option<T>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = ready!(self.work.poll_unpin(context));
        Poll::Ready((self.key.clone(), done))
    }
}

/// A running actor.
struct Running<A: Actor> {
    actor: A,
    server: ActorServer,
    agenda: Agenda,
    /// Position in the log; `None` before the first read.
    cursor: Option<u64>,
    tasks: FuturesUnordered<Task<A::Done>>,
    /// The objects with a running task.
    busy: BTreeSet<Key>,
    /// Busy objects that are due again.
    due_again: BTreeSet<Key>,
}

/// Runs an actor until the server stops.
async fn run<A: Actor>(
    actor: A,
    server: ActorServer,
    mut orders: mpsc::UnboundedReceiver<Order<A::Order>>,
) {
    let stopping = server.stopping();
    let mut revisions = server.store().subscribe();
    let mut running = Running {
        actor,
        server,
        agenda: Agenda::default(),
        cursor: None,
        tasks: FuturesUnordered::new(),
        busy: BTreeSet::new(),
        due_again: BTreeSet::new(),
    };
    while !stopping.is_cancelled() {
        let mut idle = !running.read();
        while let Ok(order) = orders.try_recv() {
            running.obey(order);
            idle = false;
        }
        while let Some(key) = running.agenda.take_due(Instant::now()) {
            running.begin(key);
            if stopping.is_cancelled() {
                return;
            }
            while let Ok(order) = orders.try_recv() {
                running.obey(order);
            }
        }
        if !idle {
            continue;
        }
        let seen = running.cursor.unwrap_or_default();
        let due = running.agenda.next_due();
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            Some(order) = orders.recv() => running.obey(order),
            Some((key, done)) = running.tasks.next() => running.end(&key, done),
            moved = revisions.wait_for(|revision| *revision > seen) => {
                if moved.is_err() {
                    return;
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

impl<A: Actor> Running<A> {
    fn obey(&mut self, order: Order<A::Order>) {
        self.actor.obey(order.order, &mut self.agenda);
        // The sender may have given up waiting.
        let _ = order.taken.send(());
    }

    /// Starts the due work for an object, and completes work that is ready immediately.
    fn begin(&mut self, key: Key) {
        if self.busy.contains(&key) {
            self.due_again.insert(key);
            return;
        }
        let Some(work) = self.actor.act(&key, &mut self.agenda) else {
            return;
        };
        self.busy.insert(key.clone());
        self.tasks.push(Task { key, work });
        while let Some(Some((key, done))) = self.tasks.next().now_or_never() {
            self.end(&key, done);
        }
    }

    /// Completes the work for an object.
    fn end(&mut self, key: &Key, done: Option<A::Done>) {
        self.busy.remove(key);
        match done {
            Some(done) => self.actor.done(key, done, &mut self.agenda),
            None => self.agenda.retry(key),
        }
        if self.due_again.remove(key) {
            self.agenda.now(key);
        }
    }

    /// Delivers the next writes, or replays all objects if the log was truncated. Returns true if
    /// there were any.
    fn read(&mut self) -> bool {
        let server = &self.server;
        let news = self
            .cursor
            .map(|cursor| server.store().events_after(cursor, BATCH_MAX));
        if let Some(Ok((until, events))) = news {
            for entry in &events {
                self.actor.observe(entry, &mut self.agenda);
            }
            self.cursor = Some(until);
            return !events.is_empty();
        }
        self.actor.reset();
        let (revision, objects) = self.server.store().all();
        for object in objects {
            self.actor.observe(&added(object), &mut self.agenda);
        }
        self.actor.replayed(&mut self.agenda);
        self.cursor = Some(revision);
        true
    }
}

/// Returns an existing object as a write.
fn added(object: Arc<Object>) -> LogEntry {
    LogEntry {
        revision: object.resource_version,
        change: Change::Added,
        object,
        previous: None,
    }
}
