//! The deployment controller: a replica set for each template, and rollouts from one to the next.

mod conditions;
mod revisions;
mod rolling;
mod scaling;
mod status;
mod view;
mod write;

use std::convert::Infallible;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::{number_at, text_at};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::json;

use super::client::ActorClient;
use super::dependents::Dependents;
use super::replica_set_controller::is_active;
use super::runner::{Actor, Agenda, Work};
use view::View;
use write::Write;

const DEPLOYMENTS: &str = "deployments";
const SETS: &str = "replicasets";

/// Rolls out deployments.
#[derive(Debug)]
pub(super) struct DeploymentController {
    client: ActorClient,
    sets: Dependents,
    pods: Dependents,
}

impl DeploymentController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            sets: Dependents::default(),
            pods: Dependents::default(),
        }
    }

    /// Reports whether a pod of an old replica set may still run.
    ///
    /// Upstream: `oldPodsRunning`
    fn old_pods_run(&self, view: &View) -> bool {
        let pods = view
            .old
            .iter()
            .flat_map(|set| self.pods.of(&set.uid, &self.client));
        let mut phases = pods.map(|(_, pod)| text_at(&pod, "/status/phase").to_owned());
        phases.any(|phase| !matches!(phase.as_str(), "Succeeded" | "Failed"))
    }

    /// Returns the next writes of a deployment.
    ///
    /// Upstream: `syncDeployment`
    fn sync_deployment(&self, view: &View) -> Vec<Write> {
        if view.is_deleting {
            return status::write(view, false);
        }
        let mut writes = Vec::new();
        if view.is_paused || view.is_scaling() {
            writes.extend(revisions::follow(view));
            writes.extend(scaling::scale(view));
            if view.is_paused {
                writes.extend(revisions::clean_up(view));
            }
            writes.extend(status::write(view, false));
            return writes;
        }
        let is_recreated = view.strategy == "Recreate";
        if view.new.is_none() {
            let old_go = is_recreated && (view.old_replicas() > 0 || self.old_pods_run(view));
            if !old_go {
                return revisions::create(view);
            }
        }
        writes.extend(revisions::follow(view));
        let before = writes.len();
        if is_recreated {
            writes.extend(rolling::rollout_recreate(view, || self.old_pods_run(view)));
        } else {
            writes.extend(rolling::rollout_rolling(view));
        }
        if writes.len() == before && view.is_complete() {
            writes.extend(revisions::clean_up(view));
        }
        writes.extend(status::write(view, true));
        writes
    }
}

/// Carries out writes until one fails. Returns the keys of created replica sets.
async fn carry_out(
    client: ActorClient,
    key: Key,
    uid: Box<str>,
    writes: Vec<Write>,
) -> Option<Vec<Key>> {
    let sets = kinds::by_storage(SETS)?;
    let mut made = Vec::new();
    for write in writes {
        let is_done = match write {
            Write::Create(set) => {
                let collection = sets.collection_path(&key.namespace);
                let (code, _) = client.ask(Method::POST, &collection, &set).await;
                let name = text_at(&set, "/metadata/name");
                let set = Key::new(sets, &key.namespace, name);
                made.push(set.clone());
                match code {
                    409 => collide(&client, (&key, &uid), &set).await?,
                    _ => (200..300).contains(&code),
                }
            }
            Write::Change { key, uid, patch } => client.patch(&key, &uid, patch).await,
            Write::Delete { key, uid } => client.delete((&key, &uid), &json!({})).await,
            Write::Note(mut patch) => {
                patch["metadata"]["uid"] = json!(uid);
                client
                    .send(Method::PATCH, (&key, &uid), "/status", &patch)
                    .await
            }
            Write::Status(status) => client.patch_status(&key, &uid, &status).await,
        };
        if !is_done {
            return None;
        }
    }
    Some(made)
}

/// Counts a collision of names, unless the replica set is the deployment's own.
async fn collide(client: &ActorClient, (key, uid): (&Key, &str), set: &Key) -> Option<bool> {
    let found = client.look_up(set).await.ok()?;
    if found.is_some_and(|found| found.owners.iter().any(|owner| **owner == *uid)) {
        return Some(true);
    }
    let deployment = client.get(key)?.value();
    let count = number_at(&deployment, "/status/collisionCount") + 1;
    let status = json!({"collisionCount": count});
    client.patch_status(key, uid, &status).await;
    None
}

impl Actor for DeploymentController {
    type Order = Infallible;
    type Done = Vec<Key>;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match &*key.storage {
            DEPLOYMENTS => {
                self.sets.note_owner(entry);
                if entry.change != Change::Deleted {
                    agenda.now(key);
                }
            }
            SETS => {
                self.pods.note_owner(entry);
                for deployment in self.sets.note(entry) {
                    agenda.now(&deployment);
                }
            }
            "pods" => {
                let sets = self.pods.note(entry);
                if sets.is_empty() {
                    return;
                }
                let is_over = entry.change == Change::Deleted || !is_active(&entry.object.value());
                for set in sets.iter().filter(|_| is_over) {
                    for deployment in self.sets.owners_of(&self.client, set) {
                        agenda.now(&deployment);
                    }
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Vec<Key>>> {
        let object = self.client.get(key)?;
        if self.sets.has_pending_expectations(&object, &self.client) {
            return None;
        }
        let sets = self.sets.of(&object.uid, &self.client);
        let view = View::new(&object, sets, self.client.server.now());
        let writes = self.sync_deployment(&view);
        if let Some(wait) = conditions::time_to_deadline(&view) {
            agenda.after(key, wait + Duration::from_secs(1));
        }
        if writes.is_empty() {
            return None;
        }
        let client = self.client.clone();
        Some(carry_out(client, key.clone(), object.uid.clone(), writes).boxed())
    }

    fn done(&mut self, key: &Key, made: Vec<Key>, agenda: &mut Agenda) {
        self.sets.expect_creations(key, made);
        agenda.now(key);
    }

    fn reset(&mut self) {
        self.sets.clear();
        self.pods.clear();
    }
}
