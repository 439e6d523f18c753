//! The namespace controller: empties a namespace that is deleted, then lets it go.

use http::Method;
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::{Actor, ActorClient};
use crate::kinds::{self, Trait};
use crate::object::Key;
use crate::store::{Change, LogEntry};

/// Empties namespaces.
#[derive(Debug)]
pub(super) struct NamespaceController {
    client: ActorClient,
}

impl NamespaceController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self { client }
    }

    /// Deletes what is left; whether nothing is.
    async fn empty(&self, namespace: &str) -> bool {
        let mut is_empty = true;
        let stored = kinds::KINDS
            .iter()
            .filter(|k| k.namespaced && !k.has(Trait::View) && !k.has(Trait::Virtual));
        for kind in stored {
            let (_, objects) = self.client.server.store().list(kind.storage, namespace);
            if objects.iter().any(|object| !object.deleting) {
                let path = kind.collection_path(namespace);
                self.client.send(Method::DELETE, &path, &json!({})).await;
            }
            let (_, left) = self.client.server.store().list(kind.storage, namespace);
            is_empty &= left.is_empty();
        }
        is_empty
    }
}

fn key(name: &str) -> Key {
    Key {
        storage: "namespaces",
        namespace: "".into(),
        name: name.into(),
    }
}

impl Actor for NamespaceController {
    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        if object.key.storage == "namespaces" {
            if object.deleting && entry.change != Change::Deleted {
                agenda.now(&object.key);
            }
        } else if entry.change == Change::Deleted && !object.key.namespace.is_empty() {
            let namespace = key(&object.key.namespace);
            if self.client.get(&namespace).is_some_and(|n| n.deleting) {
                agenda.now(&namespace);
            }
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key).filter(|object| object.deleting) else {
            return;
        };
        if !self.empty(&key.name).await {
            // What is left goes away in its own time, and its events bring us back.
            return;
        }
        let mut namespace = object.value();
        if namespace
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            return;
        }
        namespace["spec"]["finalizers"] = json!([]);
        let path = format!("/api/v1/namespaces/{}/finalize", key.name);
        if !self.client.send(Method::PUT, &path, &namespace).await {
            agenda.retry(key);
        }
    }
}
