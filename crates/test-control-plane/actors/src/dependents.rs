//! The objects of one kind by owner: the dependents of a controller's objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_test_control_plane_api::members::{list_at, text};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::ActorClient;

/// The dependents of a controller's objects, as far as the controller has observed them.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    /// The owners by uid.
    owners: BTreeMap<Box<str>, Key>,
    /// The dependents by the uids of their owners.
    by_owner: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// Created dependents that the controller has not observed yet, by owner.
    expected: BTreeMap<Key, Vec<Key>>,
}

impl Dependents {
    /// Notes a write of an owner.
    pub(super) fn note_owner(&mut self, entry: &LogEntry) {
        let object = &entry.object;
        if entry.change == Change::Deleted {
            self.owners.remove(&object.uid);
            self.expected.remove(&object.key);
        } else {
            let key = object.key.clone();
            self.owners.insert(object.uid.clone(), key);
        }
    }

    /// Notes a write of a dependent, and returns its owners.
    pub(super) fn note(&mut self, entry: &LogEntry) -> Vec<Key> {
        let object = &entry.object;
        let before = entry.previous.as_ref();
        for uid in before.into_iter().chain([object]).flat_map(|it| &it.owners) {
            if let Some(keys) = self.by_owner.get_mut(uid) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    self.by_owner.remove(uid);
                }
            }
        }
        if entry.change != Change::Deleted {
            for uid in &object.owners {
                let keys = self.by_owner.entry(uid.clone()).or_default();
                keys.insert(object.key.clone());
            }
        }
        let before = before.into_iter().flat_map(|object| &object.owners);
        let uids: BTreeSet<&Box<str>> = before.chain(&object.owners).collect();
        let owners = uids.into_iter().filter_map(|uid| self.owners.get(uid));
        owners.cloned().collect()
    }

    /// Notes the dependents that the controller has just created.
    pub(super) fn expect_creations(&mut self, owner: &Key, made: Vec<Key>) {
        if made.is_empty() {
            self.expected.remove(owner);
        } else {
            self.expected.insert(owner.clone(), made);
        }
    }

    /// Reports whether the controller has created a dependent whose write it did not observe yet.
    pub(super) fn has_pending_expectations(
        &mut self,
        owner: &Object,
        client: &ActorClient,
    ) -> bool {
        let Some(expected) = self.expected.get(&owner.key) else {
            return false;
        };
        let known = self.by_owner.get(&owner.uid);
        let is_unseen = |key: &Key| {
            let is_known = known.is_some_and(|known| known.contains(key));
            !is_known && client.get(key).is_some_and(|it| is_of(&it, &owner.uid))
        };
        let is_pending = expected.iter().any(is_unseen);
        if !is_pending {
            self.expected.remove(&owner.key);
        }
        is_pending
    }

    /// Returns the newest versions of the objects that this owner controls, by name.
    pub(super) fn of(&self, uid: &str, client: &ActorClient) -> Vec<(Arc<Object>, Value)> {
        let keys = self.by_owner.get(uid).into_iter().flatten();
        let objects = keys.filter_map(|key| client.get(key));
        objects
            .filter(|object| is_of(object, uid))
            .map(|object| (Arc::clone(&object), object.value()))
            .filter(|(_, value)| controller(value).is_some_and(|it| text(it, "uid") == uid))
            .collect()
    }

    /// Returns the owners of a dependent.
    pub(super) fn owners_of(&self, client: &ActorClient, dependent: &Key) -> Vec<Key> {
        let Some(object) = client.get(dependent) else {
            return Vec::new();
        };
        let owners = object.owners.iter();
        owners
            .filter_map(|uid| self.owners.get(uid).cloned())
            .collect()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn is_of(object: &Object, uid: &str) -> bool {
    object.owners.iter().any(|owner| **owner == *uid)
}

/// Returns the reference to an object's controller.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    let mut owners = list_at(object, "/metadata/ownerReferences");
    owners.find(|owner| owner["controller"] == true)
}

/// Returns a reference to a controller, for its dependents.
///
/// Upstream: `NewControllerRef`
pub(super) fn reference(api_version: &str, kind: &str, owner: &Object) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": &*owner.key.name,
        "uid": &*owner.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns a pod of a template, with a generated name.
///
/// Upstream: `GetPodFromTemplate`
pub(super) fn pod_of(template: &Value, prefix: &str, owner: &Value) -> Value {
    let of = |member: &str| template.pointer(&format!("/metadata/{member}")).cloned();
    json!({
        "metadata": {
            "generateName": format!("{prefix}-"),
            "labels": of("labels"),
            "annotations": of("annotations"),
            "finalizers": of("finalizers"),
            "ownerReferences": [owner],
        },
        "spec": template.get("spec"),
    })
}
