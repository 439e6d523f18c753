//! What drives an actor: it is told of every write and every order, and called when something of
//! it is due.

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

use super::agenda::Agenda;
use super::server::ActorServer;

/// How many events an actor reads at once.
const BATCH_MAX: usize = 500;

/// Requests that are on their way, while the actor goes on; none if they failed.
pub(super) type Work<T> = BoxFuture<'static, Option<T>>;

/// An actor: told of every write, called when something of it is due. Whatever takes time goes on
/// beside it, one thing for an object at a time, so that it always hears and obeys.
pub(super) trait Actor: Send {
    /// What a test can tell it to do.
    type Order: Send;

    /// What it has to know of work that is done.
    type Done: Send;

    /// Notes what a write means.
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda);

    /// Begins what is due for an object. It is due again after a while if the work fails.
    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Self::Done>>;

    /// The work for an object is done.
    fn done(&mut self, _key: &Key, _done: Self::Done, _agenda: &mut Agenda) {}

    /// Takes an order.
    fn obey(&mut self, order: Self::Order, agenda: &mut Agenda);

    /// Forgets what writes have told it: the log no longer reaches back, so everything that there
    /// is will be told again, but no deletion.
    fn begin_again(&mut self);

    /// Everything has been told again.
    fn told_again(&mut self, _agenda: &mut Agenda) {}
}

/// Gives orders to an actor.
#[derive(Debug)]
pub(super) struct Orders<O> {
    actor: &'static str,
    sender: mpsc::UnboundedSender<Order<O>>,
    stopping: CancellationToken,
}

/// An order, and whom to tell that it was taken.
#[derive(Debug)]
struct Order<O> {
    order: O,
    taken: oneshot::Sender<()>,
}

impl<O> Orders<O> {
    /// Gives an order, and returns once the actor has taken it or the server stops.
    ///
    /// # Panics
    ///
    /// If the actor has panicked: a test that goes on without it would wait in vain.
    pub(super) async fn give(&self, order: O) {
        let (taken, done) = oneshot::channel();
        let is_taken = self.sender.send(Order { order, taken }).is_ok() && done.await.is_ok();
        let actor = self.actor;
        assert!(
            is_taken || self.stopping.is_cancelled(),
            "the {actor} takes no orders: it has panicked"
        );
    }
}

/// Starts an actor; the way to it.
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
            tracing::error!(actor = name, "the actor has panicked and does nothing more");
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

/// An actor that runs.
struct Running<A: Actor> {
    actor: A,
    server: ActorServer,
    agenda: Agenda,
    /// Up to where it has read the log; none before it has read anything.
    cursor: Option<u64>,
    tasks: FuturesUnordered<Task<A::Done>>,
    /// The objects of the tasks.
    busy: BTreeSet<Key>,
    /// Those of them that are due again.
    due_again: BTreeSet<Key>,
}

/// Runs an actor until the server stops.
async fn run<A: Actor>(
    actor: A,
    server: ActorServer,
    mut orders: mpsc::UnboundedReceiver<Order<A::Order>>,
) {
    let stopping = server.stopping();
    let mut revisions = server.subscribe();
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
        // Whoever gave it may have given up waiting.
        let _ = order.taken.send(());
    }

    /// Begins what is due for an object, and ends what needs no waiting.
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

    /// The work for an object has ended.
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

    /// Tells the actor of the next writes, or of everything that there is if the log no longer
    /// reaches back to what it has seen; whether there was anything.
    fn read(&mut self) -> bool {
        let server = &self.server;
        let news = self
            .cursor
            .map(|cursor| server.events_after(cursor, BATCH_MAX));
        if let Some(Ok((until, events))) = news {
            for entry in &events {
                self.actor.observe(entry, &mut self.agenda);
            }
            self.cursor = Some(until);
            return !events.is_empty();
        }
        self.actor.begin_again();
        let (revision, objects) = self.server.all();
        for object in objects {
            self.actor.observe(&added(object), &mut self.agenda);
        }
        self.actor.told_again(&mut self.agenda);
        self.cursor = Some(revision);
        true
    }
}

/// An object that was there before, as a write.
fn added(object: Arc<Object>) -> LogEntry {
    LogEntry {
        revision: object.resource_version,
        change: Change::Added,
        object,
        previous: None,
    }
}
