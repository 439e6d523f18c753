//! What drives an actor: it is told of every write and every order, and called when something of
//! it is due.

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::agenda::Agenda;
use crate::object::{Key, Object};
use crate::server::ApiServer;
use crate::store::{Change, LogEntry};

/// How many events an actor reads at once.
const BATCH_MAX: usize = 500;

/// An actor: told of every write, called when something of it is due.
pub(super) trait Actor: Send {
    /// What a test can tell it to do.
    type Order: Send;

    /// Notes what a write means.
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda);

    /// Does what is due for an object.
    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> impl Future<Output = ()> + Send;

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
    server: &ApiServer,
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

fn obey<A: Actor>(actor: &mut A, order: Order<A::Order>, agenda: &mut Agenda) {
    actor.obey(order.order, agenda);
    // Whoever gave it may have given up waiting.
    let _ = order.taken.send(());
}

/// Runs an actor until the server stops.
async fn run<A: Actor>(
    mut actor: A,
    server: ApiServer,
    mut orders: mpsc::UnboundedReceiver<Order<A::Order>>,
) {
    let stopping = server.stopping();
    let mut revisions = server.store().subscribe();
    let mut agenda = Agenda::default();
    let mut cursor = None;
    while !stopping.is_cancelled() {
        let mut idle = !read(&mut actor, &server, &mut cursor, &mut agenda);
        while let Ok(order) = orders.try_recv() {
            obey(&mut actor, order, &mut agenda);
            idle = false;
        }
        while let Some(key) = agenda.take_due(Instant::now()) {
            actor.act(&key, &mut agenda).await;
            if stopping.is_cancelled() {
                return;
            }
            while let Ok(order) = orders.try_recv() {
                obey(&mut actor, order, &mut agenda);
            }
        }
        if !idle {
            continue;
        }
        let seen = cursor.unwrap_or_default();
        let due = agenda.next_due();
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            Some(order) = orders.recv() => obey(&mut actor, order, &mut agenda),
            moved = revisions.wait_for(|revision| *revision > seen) => {
                if moved.is_err() {
                    return;
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// Tells the actor of the next writes, or of everything that there is if the log no longer
/// reaches back to what it has seen; whether there was anything.
fn read<A: Actor>(
    actor: &mut A,
    server: &ApiServer,
    cursor: &mut Option<u64>,
    agenda: &mut Agenda,
) -> bool {
    let store = server.store();
    if let Some(Ok((until, events))) = cursor.map(|cursor| store.events_after(cursor, BATCH_MAX)) {
        for entry in &events {
            actor.observe(entry, agenda);
        }
        *cursor = Some(until);
        return !events.is_empty();
    }
    actor.begin_again();
    let (revision, objects) = store.all();
    for object in objects {
        actor.observe(&added(object), agenda);
    }
    actor.told_again(agenda);
    *cursor = Some(revision);
    true
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
