//! What runs in a cluster beside the API server, as far as tests need it.
//!
//! Actors read the store's log and write through the same requests as any client, so that
//! versions, audit log and faults hold for them too.

mod agenda;
mod garbage_collector;
mod kubelet;
mod namespaces;
mod scheduler;
mod volume_binder;

pub use kubelet::{BehaviourRule, KubeletConfig, Outcome, PodBehaviour, parse_duration};
pub use scheduler::SchedulerConfig;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::object::{Key, Object};
use crate::server::ApiServer;
use crate::store::{Change, LogEntry};
use agenda::Agenda;

/// How the user agents of actors start.
pub const ACTOR_AGENT_PREFIX: &str = "test-control-plane/";

/// How long an actor waits before it tries again what failed.
const RETRY: Duration = Duration::from_millis(500);

/// How many events an actor reads at once.
const BATCH_MAX: usize = 500;

/// Which actors run.
#[derive(Clone, Debug, Default)]
pub struct ActorsConfig {
    /// Runs pods.
    pub kubelet: Option<KubeletConfig>,
    /// Assigns pods to nodes.
    pub scheduler: Option<SchedulerConfig>,
    /// Makes volumes for claims, and keeps claims in use from going away.
    pub volume_binder: bool,
    /// Deletes what has lost its owners.
    pub garbage_collector: bool,
    /// Empties namespaces that are deleted.
    pub namespace_controller: bool,
}

impl ActorsConfig {
    /// Every actor, with its defaults.
    pub fn all() -> Self {
        Self {
            kubelet: Some(KubeletConfig::default()),
            scheduler: Some(SchedulerConfig::default()),
            volume_binder: true,
            garbage_collector: true,
            namespace_controller: true,
        }
    }
}

/// An actor: told of every write, called when something of it is due.
trait Actor: Send {
    /// Notes what a write means.
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda);

    /// Does what is due for an object.
    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> impl Future<Output = ()> + Send;
}

/// Starts the actors that are switched on.
pub(crate) async fn start(server: &ApiServer, config: ActorsConfig, tasks: &mut JoinSet<()>) {
    let waits_for_claims = config.volume_binder;
    if let Some(scheduler) = config.scheduler {
        let client = ActorClient::new(server, "scheduler");
        scheduler::create_nodes(&client, &scheduler).await;
        let actor = scheduler::Scheduler::new(client, scheduler, waits_for_claims);
        tasks.spawn(run(actor, server.clone()));
    }
    if let Some(kubelet) = config.kubelet {
        let client = ActorClient::new(server, "kubelet");
        let actor = kubelet::Kubelet::new(client, kubelet, waits_for_claims);
        tasks.spawn(run(actor, server.clone()));
    }
    if config.volume_binder {
        let client = ActorClient::new(server, "volume-binder");
        tasks.spawn(run(
            volume_binder::VolumeBinder::new(client),
            server.clone(),
        ));
    }
    if config.garbage_collector {
        let client = ActorClient::new(server, "garbage-collector");
        let actor = garbage_collector::GarbageCollector::new(client);
        tasks.spawn(run(actor, server.clone()));
    }
    if config.namespace_controller {
        let client = ActorClient::new(server, "namespace-controller");
        tasks.spawn(run(
            namespaces::NamespaceController::new(client),
            server.clone(),
        ));
    }
}

async fn run(mut actor: impl Actor, server: ApiServer) {
    let stopping = server.stopping();
    let store = server.store();
    let mut revisions = store.subscribe();
    let mut agenda = Agenda::default();
    let mut cursor = None;
    while !stopping.is_cancelled() {
        let read = cursor.map(|cursor| store.events_after(cursor, BATCH_MAX));
        let more = if let Some(Ok((until, events))) = read {
            for entry in &events {
                actor.observe(entry, &mut agenda);
            }
            cursor = Some(until);
            !events.is_empty()
        } else {
            let (revision, objects) = store.all();
            for object in objects {
                actor.observe(&added(object), &mut agenda);
            }
            cursor = Some(revision);
            true
        };
        while let Some(key) = agenda.take_due(Instant::now()) {
            actor.act(&key, &mut agenda).await;
            if stopping.is_cancelled() {
                return;
            }
        }
        if more {
            continue;
        }
        let seen = cursor.unwrap_or_default();
        let due = agenda.next_due();
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            moved = revisions.wait_for(|revision| *revision > seen) => {
                if moved.is_err() {
                    return;
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
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

/// Sends an actor's requests.
#[derive(Clone, Debug)]
struct ActorClient {
    server: ApiServer,
    agent: String,
}

impl ActorClient {
    fn new(server: &ApiServer, name: &str) -> Self {
        Self {
            server: server.clone(),
            agent: format!("{ACTOR_AGENT_PREFIX}{name}"),
        }
    }

    /// The newest version of an object.
    fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.server.store().get(key)
    }

    /// Sends a request; whether it did what was wanted, or there was nothing left to do it to.
    async fn send(&self, method: Method, path: &str, body: &Value) -> bool {
        let (code, answer) = self
            .server
            .call_json(method.clone(), path, &self.agent, body)
            .await;
        let done = (200..300).contains(&code) || code == 404;
        if !done {
            let message = answer
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            tracing::debug!(actor = %self.agent, %method, path, code, message, "request failed");
        }
        done
    }
}
