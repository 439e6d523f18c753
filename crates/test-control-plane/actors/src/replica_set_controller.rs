//! The replica set controller: keeps the desired number of pods of each set.

pub(super) mod status;
mod victims;

use std::convert::Infallible;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::{text, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::ActorClient;
use super::dependents::{Dependents, pod_of, reference};
use super::runner::{Actor, Agenda, Work};

const SETS: &str = "replicasets";

/// Limit of pods that one sync creates or deletes, as in upstream.
const BURST_MAX: usize = 500;

/// Keeps the pods of replica sets.
#[derive(Debug)]
pub(super) struct ReplicaSetController {
    client: ActorClient,
    pods: Dependents,
}

impl ReplicaSetController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            pods: Dependents::default(),
        }
    }
}

/// The changes of one sync.
#[derive(Debug)]
struct Changes {
    /// The number of missing pods, and one of them.
    create: (usize, Value),
    /// The pods to delete.
    delete: Vec<(Key, Box<str>)>,
    /// The new status.
    status: Value,
    /// True if the last creation failed.
    had_failure: bool,
}

/// Reports whether a pod counts.
///
/// Upstream: `IsPodActive`
pub(super) fn is_active(pod: &Value) -> bool {
    !matches!(text_at(pod, "/status/phase"), "Succeeded" | "Failed")
        && text_at(pod, "/metadata/deletionTimestamp").is_empty()
}

async fn carry_out(
    client: ActorClient,
    set: Key,
    uid: Box<str>,
    changes: Changes,
) -> Option<Vec<Key>> {
    let mut made = Vec::new();
    let pods = kinds::by_storage("pods")?;
    let collection = pods.collection_path(&set.namespace);
    let (count, pod) = &changes.create;
    for _ in 0..*count {
        let (code, answer) = client.ask(Method::POST, &collection, pod).await;
        if !(200..300).contains(&code) {
            if !changes.had_failure {
                let now = client.server.now_text();
                let failure = status::failure(text(&answer, "message"), &now);
                client.patch_status(&set, &uid, &failure).await;
            }
            return None;
        }
        let name = text_at(&answer, "/metadata/name");
        made.push(Key::new(pods, &set.namespace, name));
    }
    for (key, uid) in &changes.delete {
        if !client.delete((key, uid), &json!({})).await {
            return None;
        }
    }
    let mut status = changes.status;
    if changes.had_failure {
        status["conditions"] = json!([{"type": status::FAILURE, "$patch": "delete"}]);
    }
    let is_done = status == json!({}) || client.patch_status(&set, &uid, &status).await;
    is_done.then_some(made)
}

impl Actor for ReplicaSetController {
    type Order = Infallible;
    type Done = Vec<Key>;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match &*key.storage {
            SETS => {
                self.pods.note_owner(entry);
                if entry.change != Change::Deleted {
                    agenda.now(key);
                }
            }
            "pods" => {
                for set in self.pods.note(entry) {
                    agenda.now(&set);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Vec<Key>>> {
        let object = self.client.get(key)?;
        if self.pods.has_pending_expectations(&object, &self.client) {
            return None;
        }
        let set = object.value();
        let mut pods = self.pods.of(&object.uid, &self.client);
        pods.retain(|(_, pod)| is_active(pod));
        let now = self.client.server.now();
        let (status, wait) = status::of(&set, pods.iter().map(|(_, pod)| pod), now);
        if let Some(wait) = wait {
            agenda.after(key, wait);
        }
        let wanted = set.pointer("/spec/replicas").and_then(Value::as_u64);
        let wanted = usize::try_from(wanted.unwrap_or_default()).unwrap_or(usize::MAX);
        let found = pods.len();
        let (missing, surplus) = if object.deleting {
            (0, 0)
        } else {
            (wanted.saturating_sub(found), found.saturating_sub(wanted))
        };
        let delete = victims::choose(pods, surplus.min(BURST_MAX));
        let changes = Changes {
            create: (missing.min(BURST_MAX), new_pod(&object, &set)),
            delete: delete
                .iter()
                .map(|it| (it.key.clone(), it.uid.clone()))
                .collect(),
            status: status::difference(&set, status),
            had_failure: status::has_failure(&set),
        };
        let is_idle = missing == 0 && surplus == 0;
        if is_idle && changes.status == json!({}) && !changes.had_failure {
            return None;
        }
        let client = self.client.clone();
        Some(carry_out(client, key.clone(), object.uid.clone(), changes).boxed())
    }

    fn done(&mut self, key: &Key, made: Vec<Key>, agenda: &mut Agenda) {
        self.pods.expect_creations(key, made);
        agenda.now(key);
    }

    fn reset(&mut self) {
        self.pods.clear();
    }
}

fn new_pod(set: &Object, value: &Value) -> Value {
    let null = Value::Null;
    let template = value.pointer("/spec/template").unwrap_or(&null);
    let owner = reference("apps/v1", "ReplicaSet", set);
    pod_of(template, &set.key.name, &owner)
}
