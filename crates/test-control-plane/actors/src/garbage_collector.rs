//! The garbage collector: deletes objects without a living owner, and carries out foreground
//! deletion and orphaning.
//!
//! It decides on the newest state of the server, so a missing owner is really gone. The index of
//! dependents needs only the uids that the store keeps alongside each object. A dependent's
//! `blockOwnerDeletion` is read only while an owner waits for it.

mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Draft, FOREGROUND, Key, ORPHAN, Object};
use kube_test_control_plane_api::setters;
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::ActorClient;
use super::runner::{Actor, Agenda, Work};
use references::Owner;

/// Settings of the garbage collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GarbageCollectorConfig {
    /// Delay between a write and the collector's reaction. Upstream takes around a second.
    pub delay: Duration,
}

impl GarbageCollectorConfig {
    setters! {
        /// Sets the delay between a write and the collector's reaction.
        delay: Duration,
    }
}

/// The garbage collector.
#[derive(Debug)]
pub(super) struct GarbageCollector {
    client: ActorClient,
    config: GarbageCollectorConfig,
    /// The dependents of each owner, by the owner's uid.
    dependents: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// Owners that wait for their dependents, by uid.
    waiting: BTreeMap<Box<str>, Waiting>,
}

/// An owner that waits for the deletion of its dependents.
#[derive(Debug)]
struct Waiting {
    owner: Key,
    /// The dependents that block its deletion.
    blocking: BTreeSet<Key>,
}

impl GarbageCollector {
    pub(super) fn new(client: ActorClient, config: GarbageCollectorConfig) -> Self {
        Self {
            client,
            config,
            dependents: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn plan(&self, key: &Key, agenda: &mut Agenda) {
        agenda.after(key, self.config.delay);
    }

    fn unlink(&mut self, object: &Object) {
        for owner in &object.owners {
            if let Some(keys) = self.dependents.get_mut(owner) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }

    fn link(&mut self, object: &Object) {
        for owner in &object.owners {
            let keys = self.dependents.entry(owner.clone()).or_default();
            keys.insert(object.key.clone());
        }
    }

    fn dependents_of(&self, uid: &str) -> Vec<Key> {
        let keys = self.dependents.get(uid);
        keys.into_iter().flatten().cloned().collect()
    }

    /// Updates the waiting owners of an object; `object` is `None` after its deletion.
    fn update_waiting(&mut self, key: &Key, owners: &[Box<str>], object: Option<&Object>) {
        for uid in owners {
            let Some(waiting) = self.waiting.get_mut(uid) else {
                continue;
            };
            if object.is_some_and(|object| references::blocks(object, uid)) {
                waiting.blocking.insert(key.clone());
            } else {
                waiting.blocking.remove(key);
            }
        }
    }

    /// Deletes an object without any owner left, or removes its references to absent owners.
    fn collect(&self, object: &Object, draft: &Draft) -> Option<Work<()>> {
        let owners = references::classify(&self.client, object, draft)?;
        let work = self.collect_among(object, draft, &owners)?;
        let absent = references::absent(&self.client, &owners, &object.key.namespace);
        let client = self.client.clone();
        let checked = async move {
            for owner in absent {
                // An owner was only missing from the copy: process the object again.
                owner
                    .is_absent(&client)
                    .await
                    .ok()
                    .filter(|absent| *absent)?;
            }
            work.await
        };
        Some(checked.boxed())
    }

    /// Decides on an object with these owners.
    fn collect_among(
        &self,
        object: &Object,
        draft: &Draft,
        owners: &[(&Value, Owner)],
    ) -> Option<Work<()>> {
        let has = |wanted: Owner| owners.iter().any(|(_, owner)| *owner == wanted);
        if has(Owner::Solid) {
            let gone: Vec<Value> = owners
                .iter()
                .filter(|(_, owner)| *owner != Owner::Solid)
                .map(|(r, _)| json!({"$patch": "delete", "uid": r.get("uid")}))
                .collect();
            return (!gone.is_empty()).then(|| self.drop_references(object, &gone));
        }
        let finalizers = draft.metadata().finalizers();
        let has_dependents = self.dependents.contains_key(&object.uid);
        let policy = if has(Owner::Waiting) && has_dependents {
            let blocking = references::unblocked(draft);
            if !blocking.is_empty() && self.has_waiting_dependent(&object.uid) {
                // The two may wait for each other. A reference that no longer blocks resolves the
                // cycle.
                let dropped = self.drop_references(object, &blocking);
                return Some(dropped.map(|_| None).boxed());
            }
            "Foreground"
        } else if finalizers.contains(&ORPHAN) {
            "Orphan"
        } else if finalizers.contains(&FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {
                "uid": *object.uid,
                "resourceVersion": object.resource_version.to_string(),
            },
            "propagationPolicy": policy,
        });
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        Some(async move { client.delete((&key, &uid), &options).await.then_some(()) }.boxed())
    }

    fn has_waiting_dependent(&self, uid: &str) -> bool {
        let keys = self.dependents.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.client.get(key))
            .any(|dependent| references::is_waiting(&dependent))
    }

    fn drop_references(&self, object: &Object, changes: &[Value]) -> Work<()> {
        if is_custom(object) {
            let changes = changes.to_vec();
            return self.replace(object, move |metadata| {
                references::apply_changes(metadata, &changes);
            });
        }
        let patch = json!({"metadata": {"ownerReferences": changes}});
        self.patch(object, patch)
    }

    fn remove_finalizer(&self, object: &Object, finalizer: &str) -> Work<()> {
        if is_custom(object) {
            let finalizer = finalizer.to_owned();
            return self.replace(object, move |metadata| {
                let finalizers = metadata.get_mut("finalizers");
                if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                    finalizers.retain(|found| *found != *finalizer);
                }
            });
        }
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}});
        self.patch(object, patch)
    }

    /// Writes an object with other metadata, unless it was changed in between. Custom resources
    /// have no strategic merge patch.
    fn replace(
        &self,
        object: &Object,
        change: impl FnOnce(&mut Value) + Send + 'static,
    ) -> Work<()> {
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        async move {
            // Its stored version may be another one than that of its path.
            let mut value = client.read((&key, &uid)).await?;
            if let Some(metadata) = value.get_mut("metadata") {
                change(metadata);
            }
            let sent = client.send(Method::PUT, (&key, &uid), "", &value).await;
            sent.then_some(())
        }
        .boxed()
    }

    fn patch(&self, object: &Object, patch: Value) -> Work<()> {
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        async move { client.patch(&key, &uid, patch).await.then_some(()) }.boxed()
    }

    /// Removes the references to an owner from its dependents, then the owner's finalizer.
    fn orphan_dependents(&self, owner: &Object) -> Work<()> {
        let gone = [json!({"$patch": "delete", "uid": *owner.uid})];
        let keys = self.dependents_of(&owner.uid);
        let dependents = keys.iter().filter_map(|key| self.client.get(key));
        let dropped: Vec<Work<()>> = dependents
            .filter(|dependent| dependent.owners.contains(&owner.uid))
            .map(|dependent| self.drop_references(&dependent, &gone))
            .collect();
        let let_go = self.remove_finalizer(owner, ORPHAN);
        async move {
            for dropped in dropped {
                dropped.await?;
            }
            let_go.await
        }
        .boxed()
    }

    /// Deletes an owner's dependents, then removes the owner's finalizer once none of them blocks.
    fn delete_dependents(&mut self, owner: &Object, agenda: &mut Agenda) -> Option<Work<()>> {
        if !self.waiting.contains_key(&owner.uid) {
            let mut blocking = BTreeSet::new();
            for key in self.dependents_of(&owner.uid) {
                if let Some(dependent) = self.client.get(&key) {
                    agenda.now(&key);
                    if references::blocks(&dependent, &owner.uid) {
                        blocking.insert(key);
                    }
                }
            }
            let owner_key = owner.key.clone();
            let waiting = Waiting {
                owner: owner_key,
                blocking,
            };
            self.waiting.insert(owner.uid.clone(), waiting);
        }
        let waiting = self.waiting.get(&owner.uid)?;
        let is_free = waiting.blocking.is_empty();
        is_free.then(|| self.remove_finalizer(owner, FOREGROUND))
    }
}

/// Returns true for objects of a custom resource.
fn is_custom(object: &Object) -> bool {
    kinds::by_storage(&object.key.storage).is_none()
}

impl Actor for GarbageCollector {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        let deleted = entry.change == Change::Deleted;
        let mut owners: BTreeSet<Box<str>> = object.owners.iter().cloned().collect();
        if let Some(previous) = &entry.previous {
            self.unlink(previous);
            owners.extend(previous.owners.iter().cloned());
        }
        if !owners.is_empty() && !self.waiting.is_empty() {
            let owners: Vec<Box<str>> = owners.into_iter().collect();
            let left = Some(&**object).filter(|_| !deleted);
            self.update_waiting(&object.key, &owners, left);
            for waiting in owners.iter().filter_map(|uid| self.waiting.get(uid)) {
                if waiting.blocking.is_empty() {
                    self.plan(&waiting.owner, agenda);
                }
            }
        }
        if deleted {
            self.waiting.remove(&object.uid);
            for key in self.dependents_of(&object.uid) {
                self.plan(&key, agenda);
            }
            return;
        }
        self.link(object);
        let owners_before = entry.previous.as_ref().map(|previous| &previous.owners);
        let has_new_owners = owners_before != Some(&object.owners) && !object.owners.is_empty();
        if has_new_owners || object.deleting {
            self.plan(&object.key, agenda);
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key)?;
        let draft = object.draft();
        if !object.deleting {
            let has_owners = !object.owners.is_empty();
            return has_owners.then(|| self.collect(&object, &draft)).flatten();
        }
        let finalizers = draft.metadata().finalizers();
        if finalizers.contains(&ORPHAN) {
            Some(self.orphan_dependents(&object))
        } else if finalizers.contains(&FOREGROUND) {
            self.delete_dependents(&object, agenda)
        } else {
            None
        }
    }

    fn reset(&mut self) {
        self.dependents.clear();
        self.waiting.clear();
    }
}
