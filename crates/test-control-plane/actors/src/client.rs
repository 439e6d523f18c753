//! The actors' API client, which sends the same requests as any other client.

use std::sync::Arc;

use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_server::faults::ACTOR_AGENT_PREFIX;
use serde_json::{Value, json};

use super::server::{ActorServer, Inconclusive};

/// Sends an actor's requests.
#[derive(Clone, Debug)]
pub(super) struct ActorClient {
    pub(super) server: ActorServer,
    agent: Arc<str>,
}

impl ActorClient {
    pub(super) fn new(server: &ActorServer, name: &str) -> Self {
        Self {
            server: server.clone(),
            agent: format!("{ACTOR_AGENT_PREFIX}{name}").into(),
        }
    }

    /// Returns the newest version of an object.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.server.store().get(key)
    }

    /// Returns the newest version of an object, for callers that act on its absence: see
    /// [`ActorServer::look_up`].
    pub(super) async fn look_up(&self, key: &Key) -> Result<Option<Arc<Object>>, Inconclusive> {
        self.server.look_up(key).await
    }

    /// Returns the newest versions of a kind's objects, in one namespace or in all (an empty name).
    pub(super) fn list(&self, storage: &str, namespace: &str) -> Vec<Arc<Object>> {
        self.server.store().list(storage, namespace).1
    }

    /// Sends a request and returns the status code and body of the response.
    pub(super) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (code, answer) = self
            .server
            .call_json(method.clone(), path, &self.agent, body)
            .await;
        if !(200..300).contains(&code) {
            let message = answer
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            tracing::debug!(actor = %self.agent, %method, path, code, message, "request failed");
        }
        (code, answer)
    }

    /// Creates an object in a collection and reports success.
    pub(super) async fn create(&self, collection: &str, body: &Value) -> bool {
        let (code, _) = self.ask(Method::POST, collection, body).await;
        (200..300).contains(&code)
    }

    /// Sends a request for an object, or for one of its subresources (`/status`). Returns true on
    /// success, or if the object no longer exists.
    pub(super) async fn send(
        &self,
        method: Method,
        (key, uid): (&Key, &str),
        subresource: &str,
        body: &Value,
    ) -> bool {
        // The actors know the schema, and the check doubles the cost of a small patch.
        let query = match method {
            Method::PATCH => "?fieldValidation=Ignore",
            _ => "",
        };
        let path = format!("{}{subresource}{query}", self.path(key));
        let (code, _) = self.ask(method, &path, body).await;
        // An injected fault may respond with 404 for an object that still exists.
        let is_gone = || self.get(key).is_none_or(|object| *object.uid != *uid);
        (200..300).contains(&code) || code == 404 && is_gone()
    }

    fn path(&self, key: &Key) -> String {
        let kind = self.server.kind_stored_as(&key.storage);
        let path = kind.map(|kind| kind.object_path(&key.namespace, &key.name));
        path.unwrap_or_default()
    }

    /// Reads the object with this uid, as clients see it.
    pub(super) async fn read(&self, (key, uid): (&Key, &str)) -> Option<Value> {
        let path = self.path(key);
        let (code, value) = self.ask(Method::GET, &path, &Value::Null).await;
        let found = value.pointer("/metadata/uid").and_then(Value::as_str);
        (code == 200 && found == Some(uid)).then_some(value)
    }

    /// Deletes an object. Returns true on success, or if the object no longer exists.
    pub(super) async fn delete(&self, object: (&Key, &str), options: &Value) -> bool {
        self.send(Method::DELETE, object, "", options).await
    }

    /// Applies a strategic merge patch to an object with this uid.
    pub(super) async fn patch(&self, key: &Key, uid: &str, patch: Value) -> bool {
        let patch = with_uid(patch, uid);
        self.send(Method::PATCH, (key, uid), "", &patch).await
    }

    /// Applies a strategic merge patch to the status of an object with this uid.
    pub(super) async fn patch_status(&self, key: &Key, uid: &str, status: &Value) -> bool {
        let patch = with_uid(json!({"status": status}), uid);
        self.send(Method::PATCH, (key, uid), "/status", &patch)
            .await
    }
}

fn with_uid(mut patch: Value, uid: &str) -> Value {
    patch["metadata"]["uid"] = json!(uid);
    patch
}

/// Returns the URL of a built-in object, or an empty string if its kind is unknown.
pub(super) fn path(key: &Key) -> String {
    kinds::by_storage(&key.storage)
        .map(|kind| kind.object_path(&key.namespace, &key.name))
        .unwrap_or_default()
}
