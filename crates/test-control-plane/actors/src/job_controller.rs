//! The job controller: runs the pods of jobs until enough of them have succeeded, or too many have
//! failed.

mod finish;
mod indexes;
mod new_pod;
mod pods;
mod status;
mod view;

use std::convert::Infallible;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::members::{text, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::ActorClient;
use super::dependents::{Dependents, controller};
use super::runner::{Actor, Agenda, Work};
use pods::{JobPod, TRACKING};
use view::View;

const JOBS: &str = "jobs";

/// Limit of pods that one sync creates or deletes, as in upstream.
const BURST_MAX: usize = 500;

/// Runs jobs.
#[derive(Debug)]
pub(super) struct JobController {
    client: ActorClient,
    pods: Dependents,
}

/// The writes of one sync, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Changes {
    /// The status that names the finished pods before they lose the tracking finalizer.
    uncounted: Option<Value>,
    /// The pods that lose the tracking finalizer.
    untrack: Vec<(Key, Box<str>)>,
    /// The pods to delete.
    delete: Vec<(Key, Box<str>)>,
    /// The pods to create.
    create: Vec<Value>,
    /// The new status.
    status: Option<Value>,
    /// True if the job itself is deleted, some time after its end.
    is_expired: bool,
}

impl JobController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            pods: Dependents::default(),
        }
    }

    /// Schedules the jobs of a pod, or the pod if no job tracks it.
    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let jobs = self.pods.note(entry);
        if jobs.is_empty() && entry.change != Change::Deleted && is_tracked(&entry.object) {
            agenda.now(&entry.object.key);
        }
        for job in jobs {
            agenda.now(&job);
            if is_tracked(&entry.object) && entry.object.owners.is_empty() {
                agenda.now(&entry.object.key);
            }
        }
    }

    /// Removes the tracking finalizer from a pod whose job is gone.
    ///
    /// Upstream: `syncOrphanPod`
    fn sync_orphan_pod(&self, key: &Key) -> Option<Work<Vec<Key>>> {
        let pod = self.client.get(key)?;
        if !is_tracked(&pod) {
            return None;
        }
        let value = pod.value();
        let job = controller(&value).filter(|owner| text(owner, "kind") == "Job");
        let jobs = kinds::by_storage(JOBS)?;
        let job = job.map(|owner| {
            (
                Key::new(jobs, &key.namespace, text(owner, "name")),
                text(owner, "uid").to_owned(),
            )
        });
        let client = self.client.clone();
        let (key, uid) = (key.clone(), pod.uid.clone());
        let work = async move {
            if let Some((job, uid)) = job {
                let found = client.look_up(&job).await.ok()?;
                if found.is_some_and(|found| *found.uid == *uid) {
                    return Some(Vec::new());
                }
            }
            remove_tracking_finalizer(&client, &key, &uid)
                .await
                .then(Vec::new)
        };
        Some(work.boxed())
    }
}

fn is_tracked(pod: &Object) -> bool {
    // Search the raw text first: few pods have the finalizer.
    let text = pod.text();
    let wanted = TRACKING.as_bytes();
    text.windows(wanted.len()).any(|part| part == wanted)
        && pod.draft().metadata().finalizers().contains(&TRACKING)
}

async fn remove_tracking_finalizer(client: &ActorClient, key: &Key, uid: &str) -> bool {
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}});
    client.patch(key, uid, patch).await
}

async fn carry_out(
    client: ActorClient,
    key: Key,
    uid: Box<str>,
    changes: Changes,
) -> Option<Vec<Key>> {
    if let Some(status) = &changes.uncounted
        && !client.patch_status(&key, &uid, status).await
    {
        return None;
    }
    for (pod, uid) in &changes.untrack {
        if !remove_tracking_finalizer(&client, pod, uid).await {
            return None;
        }
    }
    for (pod, uid) in &changes.delete {
        if !client.delete((pod, uid), &json!({})).await {
            return None;
        }
    }
    let pods = kinds::by_storage("pods")?;
    let collection = pods.collection_path(&key.namespace);
    let mut made = Vec::new();
    let mut is_done = true;
    for pod in &changes.create {
        let (code, answer) = client.ask(Method::POST, &collection, pod).await;
        is_done = (200..300).contains(&code);
        if !is_done {
            break;
        }
        let name = text_at(&answer, "/metadata/name");
        made.push(Key::new(pods, &key.namespace, name));
    }
    if let Some(status) = &changes.status {
        is_done &= client.patch_status(&key, &uid, status).await;
    }
    if changes.is_expired {
        let options = json!({"propagationPolicy": "Foreground", "preconditions": {"uid": uid}});
        is_done &= client.delete((&key, &uid), &options).await;
    }
    is_done.then_some(made)
}

impl Actor for JobController {
    type Order = Infallible;
    type Done = Vec<Key>;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        match &*key.storage {
            JOBS => {
                if entry.change == Change::Deleted {
                    let pods = self.pods.of(&entry.object.uid, &self.client);
                    for (pod, _) in pods.iter().filter(|(pod, _)| is_tracked(pod)) {
                        agenda.now(&pod.key);
                    }
                } else {
                    agenda.now(key);
                }
                self.pods.note_owner(entry);
            }
            "pods" => self.note_pod(entry, agenda),
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<Vec<Key>>> {
        if &*key.storage == "pods" {
            return self.sync_orphan_pod(key);
        }
        let object = self.client.get(key)?;
        if self.pods.has_pending_expectations(&object, &self.client) {
            return None;
        }
        let pods = self.pods.of(&object.uid, &self.client);
        let pods = pods.into_iter().map(JobPod::new).collect();
        let view = View::new(&object, pods, self.client.server.now());
        if view.is_foreign() {
            return None;
        }
        let (changes, wait) = sync_job(&object, &view);
        if let Some(wait) = wait {
            agenda.after(key, wait);
        }
        if changes == Changes::default() {
            return None;
        }
        let client = self.client.clone();
        Some(carry_out(client, key.clone(), object.uid.clone(), changes).boxed())
    }

    fn done(&mut self, key: &Key, made: Vec<Key>, agenda: &mut Agenda) {
        if &*key.storage == JOBS {
            self.pods.expect_creations(key, made);
            agenda.now(key);
        }
    }

    fn reset(&mut self) {
        self.pods.clear();
    }
}

/// Returns the writes of a sync, and the time until the next one.
///
/// Upstream: `syncJob`
fn sync_job(job: &Object, view: &View) -> (Changes, Option<Duration>) {
    if let Some(end) = finish::end(view) {
        let wait = finish::time_to_live(view, end);
        let changes = Changes {
            untrack: identities(view.pods.iter().filter(|pod| pod.is_tracked)),
            is_expired: wait == Some(Duration::ZERO) && !view.is_deleting,
            ..Changes::default()
        };
        return (changes, wait.filter(|wait| !wait.is_zero()));
    }
    if view.is_deleting {
        let ended_or_deleting = view
            .pods
            .iter()
            .filter(|pod| pod.is_tracked && (pod.is_over() || pod.is_deleting));
        let changes = Changes {
            untrack: identities(ended_or_deleting),
            ..Changes::default()
        };
        return (changes, None);
    }
    let target = finish::target(view);
    let finished = view
        .pods
        .iter()
        .filter(|pod| pod.is_tracked && pod.is_over());
    let mut changes = Changes {
        uncounted: status::uncounted(view),
        untrack: identities(finished),
        ..Changes::default()
    };
    let mut wait = finish::time_to_deadline(view).filter(|wait| !wait.is_zero());
    let active = || view.pods.iter().filter(|pod| pod.is_active());
    let wanted = view.wanted_active();
    if target.is_some() {
        // These pods keep the finalizer, so they are counted when they end.
        changes.delete = identities(active().take(BURST_MAX));
    } else if active().count() > wanted {
        // Surplus pods lose the finalizer, so they are not counted.
        let surplus = active().count() - wanted;
        let mut ranked = active().collect::<Vec<_>>();
        ranked.sort_by_key(|pod| pod.deletion_rank());
        let gone = identities(ranked.into_iter().take(surplus.min(BURST_MAX)));
        changes.untrack.extend(gone.iter().cloned());
        changes.delete = gone;
    } else {
        let missing = (wanted - active().count()).min(BURST_MAX);
        let pause = view.back_off();
        if missing > 0 && pause.is_zero() {
            changes.create = new_pod::several(job, view, missing);
        } else if missing > 0 {
            wait = Some(wait.map_or(pause, |wait| wait.min(pause)));
        }
    }
    let is_still = changes.delete.is_empty() && changes.create.is_empty();
    changes.status = status::difference(view, target.as_ref(), is_still);
    (changes, wait)
}

fn identities<'a>(pods: impl Iterator<Item = &'a JobPod>) -> Vec<(Key, Box<str>)> {
    pods.map(|pod| (pod.key.clone(), pod.uid.clone())).collect()
}
