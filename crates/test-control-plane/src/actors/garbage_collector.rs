//! The garbage collector: deletes what has lost its owners, and carries out foreground deletion
//! and orphaning.
//!
//! It decides on the newest state of the store, so an owner that isn't there is gone for good.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::{Actor, ActorClient};
use crate::handlers::{FOREGROUND, ORPHAN};
use crate::kinds;
use crate::object::{Draft, Key, Object};
use crate::store::{Change, LogEntry};

/// The garbage collector.
#[derive(Debug)]
pub(super) struct GarbageCollector {
    client: ActorClient,
    /// The dependents of each owner, by the owner's uid.
    dependents: BTreeMap<Box<str>, BTreeSet<Key>>,
    /// Owners that wait for their dependents, by uid.
    waiting: BTreeMap<Box<str>, Key>,
}

/// What an owner reference points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// An owner that stays, or one of a kind that the server doesn't know.
    Solid,
    /// Nothing, or another object of that name.
    Absent,
    /// An owner that waits for its dependents to go.
    Waiting,
}

impl GarbageCollector {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            dependents: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
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

    fn classify(&self, reference: &Value, namespace: &str) -> Owner {
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or("");
        let Some(kind) = kinds::by_kind(text("apiVersion"), text("kind")) else {
            return Owner::Solid;
        };
        let namespace = if kind.namespaced { namespace } else { "" };
        let key = Key::new(kind, namespace, text("name"));
        let Some(owner) = self.client.get(&key).filter(|o| *o.uid == *text("uid")) else {
            return Owner::Absent;
        };
        if owner.deleting && owner.draft().metadata().finalizers().contains(&FOREGROUND) {
            return Owner::Waiting;
        }
        Owner::Solid
    }

    /// Deletes an object whose owners are gone, or drops its references to those that are.
    async fn collect(&self, object: &Object, draft: &Draft) -> bool {
        let namespace = &object.key.namespace;
        let references: Vec<(&Value, Owner)> = draft
            .metadata()
            .owner_references()
            .map(|reference| (reference, self.classify(reference, namespace)))
            .collect();
        let has = |wanted: Owner| references.iter().any(|(_, owner)| *owner == wanted);
        if has(Owner::Solid) {
            let gone: Vec<Value> = references
                .iter()
                .filter(|(_, owner)| *owner != Owner::Solid)
                .map(|(r, _)| json!({"$patch": "delete", "uid": r.get("uid")}))
                .collect();
            return gone.is_empty() || self.drop_references(object, &gone).await;
        }
        let finalizers = draft.metadata().finalizers();
        let has_dependents = self.dependents.contains_key(&object.uid);
        let policy = if has(Owner::Waiting) && has_dependents {
            "Foreground"
        } else if finalizers.contains(&ORPHAN) {
            "Orphan"
        } else if finalizers.contains(&FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {
                "uid": *object.uid,
                "resourceVersion": object.resource_version.to_string(),
            },
            "propagationPolicy": policy,
        });
        self.client
            .send(Method::DELETE, &path(&object.key), &body)
            .await
    }

    async fn drop_references(&self, object: &Object, gone: &[Value]) -> bool {
        let patch = json!({"metadata": {"uid": *object.uid, "ownerReferences": gone}});
        self.client
            .send(Method::PATCH, &path(&object.key), &patch)
            .await
    }

    async fn orphan_dependents(&self, owner: &Object) -> bool {
        let gone = [json!({"$patch": "delete", "uid": *owner.uid})];
        for key in self.dependents_of(&owner.uid) {
            if let Some(dependent) = self.client.get(&key)
                && !self.drop_references(&dependent, &gone).await
            {
                return false;
            }
        }
        self.remove_finalizer(owner, ORPHAN).await
    }

    async fn delete_dependents(&self, owner: &Object, agenda: &mut Agenda) -> bool {
        let mut blocked = false;
        for key in self.dependents_of(&owner.uid) {
            let Some(dependent) = self.client.get(&key) else {
                continue;
            };
            blocked |= dependent.draft().metadata().owner_references().any(|r| {
                r.get("uid").and_then(Value::as_str) == Some(&owner.uid)
                    && r.get("blockOwnerDeletion") == Some(&Value::Bool(true))
            });
            if !dependent.deleting {
                agenda.now(&key);
            }
        }
        blocked || self.remove_finalizer(owner, FOREGROUND).await
    }

    async fn remove_finalizer(&self, object: &Object, finalizer: &str) -> bool {
        let patch = json!({"metadata": {
            "uid": *object.uid,
            "$deleteFromPrimitiveList/finalizers": [finalizer],
        }});
        self.client
            .send(Method::PATCH, &path(&object.key), &patch)
            .await
    }
}

fn path(key: &Key) -> String {
    kinds::by_storage(key.storage)
        .map(|kind| kind.object_path(&key.namespace, &key.name))
        .unwrap_or_default()
}

impl Actor for GarbageCollector {
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        if let Some(previous) = &entry.previous {
            self.unlink(previous);
            for owner in &previous.owners {
                if let Some(key) = self.waiting.get(owner) {
                    agenda.now(key);
                }
            }
        }
        if entry.change == Change::Deleted {
            self.waiting.remove(&object.uid);
            for key in self.dependents_of(&object.uid) {
                agenda.now(&key);
            }
            return;
        }
        self.link(object);
        let owners_before = entry.previous.as_ref().map(|previous| &previous.owners);
        if owners_before != Some(&object.owners) && !object.owners.is_empty() || object.deleting {
            agenda.now(&object.key);
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        let draft = object.draft();
        let finalizers = draft.metadata().finalizers();
        let done = if object.deleting {
            if finalizers.contains(&ORPHAN) {
                self.orphan_dependents(&object).await
            } else if finalizers.contains(&FOREGROUND) {
                self.waiting.insert(object.uid.clone(), key.clone());
                self.delete_dependents(&object, agenda).await
            } else {
                true
            }
        } else {
            object.owners.is_empty() || self.collect(&object, &draft).await
        };
        if !done {
            agenda.retry(key);
        }
    }
}
