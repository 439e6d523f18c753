//! The namespace controller: empties a terminating namespace, then removes its finalizer.
//!
//! It deletes pods first, with their grace periods, and everything else after them. It counts the
//! remaining objects from their writes, so it processes a namespace when its last pod or its last
//! object goes, not at every deletion.

mod conditions;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::kinds::{self, Kind, Trait};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::{ActorClient, path};
use super::runner::{Actor, Agenda, Work};
use conditions::Remaining;

/// Interval of checks on a namespace with remaining objects.
const LOOK_AGAIN: Duration = Duration::from_secs(8);

/// The finalizer in a namespace's spec that protects its content.
const CONTENT_FINALIZER: &str = "kubernetes";

/// Settings of the namespace controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceControllerConfig {
    /// Delay between the deletion of a namespace and of its content. Upstream waits 5 seconds.
    pub delay: Duration,
}

impl NamespaceControllerConfig {
    setters! {
        /// Sets the delay between the deletion of a namespace and of its content.
        delay: Duration,
    }
}

/// Number of objects in a namespace.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    pods: usize,
    others: usize,
}

/// Empties terminating namespaces.
#[derive(Debug)]
pub(super) struct NamespaceController {
    client: ActorClient,
    config: NamespaceControllerConfig,
    content: BTreeMap<Arc<str>, Content>,
}

impl NamespaceController {
    pub(super) fn new(client: ActorClient, config: NamespaceControllerConfig) -> Self {
        Self {
            client,
            config,
            content: BTreeMap::new(),
        }
    }

    /// Counts an object. Returns true if it was the last pod or the last object.
    fn count(&mut self, object: &Object, change: Change) -> bool {
        let key = &object.key;
        let content = self.content.entry(Arc::clone(&key.namespace)).or_default();
        let number = if &*key.storage == "pods" {
            &mut content.pods
        } else {
            &mut content.others
        };
        match change {
            Change::Modified => return false,
            Change::Added => *number += 1,
            Change::Deleted => *number = number.saturating_sub(1),
        }
        let is_last = change == Change::Deleted && *number == 0;
        if content.pods + content.others == 0 {
            self.content.remove(&key.namespace);
        }
        is_last
    }
}

/// Empties one namespace.
struct Emptying {
    client: ActorClient,
    namespace: Arc<Object>,
}

/// Progress on a namespace.
#[derive(Debug)]
pub(super) enum Done {
    /// Objects remain.
    Waiting,
    /// The namespace was finalized.
    Finished,
}

impl Emptying {
    async fn run(self) -> Option<Done> {
        let key = &self.namespace.key;
        let (remaining, accepted) = self.empty(&key.name).await;
        let namespace = self.report(&remaining).await?;
        if !remaining.is_empty() {
            return Some(Done::Waiting);
        }
        (accepted && self.finalize(namespace).await).then_some(Done::Finished)
    }

    /// Deletes a namespace's pods, then the rest. Returns the remaining objects, and whether every
    /// deletion was accepted.
    async fn empty(&self, namespace: &str) -> (Remaining, bool) {
        let mut remaining = Remaining::default();
        let mut accepted = true;
        let custom = self.client.server.custom_kinds();
        let built_in = kinds::KINDS.iter();
        let built_in = built_in.filter(|k| !k.has(Trait::View) && !k.has(Trait::Virtual));
        let (pods, others): (Vec<&Arc<Kind>>, Vec<&Arc<Kind>>) = built_in
            .chain(&custom)
            .filter(|kind| kind.namespaced)
            .partition(|kind| &*kind.storage == "pods");
        for group in [pods, others] {
            for kind in group {
                accepted &= self.delete_all(kind, namespace).await;
                remaining.count(kind, &self.client.list(&kind.storage, namespace));
            }
            if !remaining.is_empty() {
                break;
            }
        }
        (remaining, accepted)
    }

    async fn delete_all(&self, kind: &Kind, namespace: &str) -> bool {
        let objects = self.client.list(&kind.storage, namespace);
        if objects.iter().all(|object| object.deleting) {
            return true;
        }
        let collection = kind.collection_path(namespace);
        let options = json!({"propagationPolicy": "Background"});
        let (code, _) = self.client.ask(Method::DELETE, &collection, &options).await;
        if code != 405 {
            return code == 200;
        }
        let mut accepted = true;
        for object in objects.iter().filter(|object| !object.deleting) {
            let object = (&object.key, &*object.uid);
            accepted &= self.client.delete(object, &options).await;
        }
        accepted
    }

    /// Reports the remaining objects in a namespace's status and returns the updated namespace.
    async fn report(&self, remaining: &Remaining) -> Option<Value> {
        let mut value = self.namespace.value();
        let now = self.client.server.now_text();
        if !conditions::update(&mut value, remaining, &now) {
            return Some(value);
        }
        let path = format!("{}/status", path(&self.namespace.key));
        let (code, value) = self.client.ask(Method::PUT, &path, &value).await;
        (code == 200).then_some(value)
    }

    /// Removes the finalizer for the content.
    async fn finalize(&self, mut namespace: Value) -> bool {
        let finalizers = namespace.pointer_mut("/spec/finalizers");
        let Some(list) = finalizers.and_then(Value::as_array_mut) else {
            return true;
        };
        let before = list.len();
        list.retain(|finalizer| finalizer != CONTENT_FINALIZER);
        if list.len() == before {
            return true;
        }
        let object = (&self.namespace.key, &*self.namespace.uid);
        let send = self
            .client
            .send(Method::PUT, object, "/finalize", &namespace);
        send.await
    }
}

fn key(namespace: &Arc<str>) -> Key {
    Key::of("namespaces", "", namespace)
}

impl Actor for NamespaceController {
    type Order = Infallible;
    type Done = Done;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        if &*object.key.storage == "namespaces" {
            let was_deleting = entry.previous.as_ref().is_some_and(|p| p.deleting);
            if object.deleting && !was_deleting && entry.change != Change::Deleted {
                agenda.after(&object.key, self.config.delay);
            }
        } else if !object.key.namespace.is_empty() && self.count(object, entry.change) {
            let namespace = key(&object.key.namespace);
            if self.client.get(&namespace).is_some_and(|n| n.deleting) {
                agenda.after(&namespace, self.config.delay);
            }
        }
    }

    fn act(&mut self, key: &Key, _: &mut Agenda) -> Option<Work<Done>> {
        let namespace = self.client.get(key).filter(|object| object.deleting)?;
        let client = self.client.clone();
        Some(Emptying { client, namespace }.run().boxed())
    }

    fn done(&mut self, key: &Key, done: Done, agenda: &mut Agenda) {
        match done {
            Done::Waiting => agenda.after(key, LOOK_AGAIN),
            Done::Finished => {}
        }
    }

    fn reset(&mut self) {
        self.content.clear();
    }
}
