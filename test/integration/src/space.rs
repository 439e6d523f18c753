//! Access to the objects of one namespace, as JSON.

use futures::{Stream, StreamExt as _};
use http::{Method, Request};
use kube::core::WatchEvent;
use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};
use statefulset_client::resource::Resource;

/// Services, which no controller of this project changes.
pub const SERVICES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "services",
    kind: "Service",
};

/// Nodes, which are cluster-scoped.
pub const NODES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "nodes",
    kind: "Node",
};

/// Maximum number of attempts to change an object that others change too.
const TRIES_MAX: usize = 50;

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {code} {reason}: {message}")]
pub struct Refused {
    /// Description of the request.
    pub action: String,
    /// The HTTP status code; 0 if there was no response.
    pub code: u16,
    /// The reason, such as `Conflict`.
    pub reason: String,
    /// Message of the server.
    pub message: String,
}

/// Type of a patch.
#[derive(Clone, Copy, Debug)]
pub enum Patch {
    /// A merge patch (RFC 7386).
    Merge,
    /// A strategic merge patch.
    Strategic,
}

impl Patch {
    /// Content type of the request.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// One namespace of a cluster, on any API server.
#[derive(Clone)]
pub struct Space {
    client: kube::Client,
    name: String,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl Space {
    /// Accesses an existing namespace.
    pub fn new(client: kube::Client, name: &str) -> Self {
        let name = name.to_owned();
        Self { client, name }
    }

    /// Name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another namespace of the same cluster; an empty name is for cluster-scoped objects.
    #[must_use]
    pub fn elsewhere(&self, name: &str) -> Self {
        Self::new(self.client.clone(), name)
    }

    /// Sends any request.
    ///
    /// # Errors
    ///
    /// The server's error, or a failed request.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, Refused> {
        let action = format!("{method} {path}");
        let text = if body.is_null() {
            Vec::new()
        } else {
            // Encode like a Go client: servers store the bytes of revision data verbatim.
            to_go_string(body).into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type);
        let request = request.body(text).expect("a path makes a request");
        self.client
            .request(request)
            .await
            .map_err(|error| match error {
                kube::Error::Api(status) => Refused {
                    action,
                    code: status.code,
                    reason: status.reason.clone(),
                    message: status.message.clone(),
                },
                other => Refused {
                    action,
                    code: 0,
                    reason: "NoAnswer".to_owned(),
                    message: other.to_string(),
                },
            })
    }

    async fn ask_json(&self, method: Method, path: &str, body: &Value) -> Result<Value, Refused> {
        self.ask(method, path, "application/json", body).await
    }

    fn object_path(&self, resource: &Resource, name: &str, subresource: &str) -> String {
        let path = resource.object_path(&self.name, name);
        if subresource.is_empty() {
            path
        } else {
            format!("{path}/{subresource}")
        }
    }

    /// Creates an object.
    pub async fn create(&self, resource: &Resource, object: &Value) -> Value {
        let path = resource.collection_path(&self.name);
        let created = self.ask_json(Method::POST, &path, object).await;
        created.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Reads an object, or a subresource of it; `None` if it doesn't exist.
    pub async fn find(&self, resource: &Resource, name: &str, subresource: &str) -> Option<Value> {
        let path = self.object_path(resource, name, subresource);
        match self.ask_json(Method::GET, &path, &Value::Null).await {
            Ok(object) => Some(object),
            Err(refused) if refused.code == 404 => None,
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Reads an object in a media type other than JSON, such as `application/yaml`.
    pub async fn get_as(&self, resource: &Resource, name: &str, media_type: &str) -> String {
        let request = Request::get(self.object_path(resource, name, ""))
            .header("accept", media_type)
            .body(Vec::new());
        let request = request.expect("a path makes a request");
        let text = self.client.request_text(request).await;
        text.unwrap_or_else(|error| panic!("read {} as {media_type}: {error}", resource.kind))
    }

    /// Reads an object that must exist.
    pub async fn get(&self, resource: &Resource, name: &str) -> Value {
        let found = self.find(resource, name, "").await;
        found.unwrap_or_else(|| panic!("{} {}/{name} is gone", resource.kind, self.name))
    }

    /// Writes an object, or a subresource of it, verbatim.
    ///
    /// # Errors
    ///
    /// The server's rejection.
    pub async fn put(
        &self,
        resource: &Resource,
        name: &str,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, Refused> {
        let path = self.object_path(resource, name, subresource);
        self.ask_json(Method::PUT, &path, object).await
    }

    /// Patches an object, or a subresource of it.
    pub async fn patch(
        &self,
        resource: &Resource,
        name: &str,
        subresource: &str,
        kind: Patch,
        patch: &Value,
    ) -> Value {
        let path = self.object_path(resource, name, subresource);
        let content_type = kind.content_type();
        let patched = self.ask(Method::PATCH, &path, content_type, patch).await;
        patched.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Reads an object, changes it, and writes it or its subresource; retries on conflict.
    pub async fn change(
        &self,
        resource: &Resource,
        name: &str,
        subresource: &str,
        change: impl Fn(&mut Value),
    ) -> Value {
        for _ in 0..TRIES_MAX {
            let mut object = self.get(resource, name).await;
            change(&mut object);
            match self.put(resource, name, subresource, &object).await {
                Err(refused) if refused.code == 409 => {}
                written => return written.unwrap_or_else(|refused| panic!("{refused}")),
            }
        }
        panic!(
            "{} {}/{name} changes all the time",
            resource.kind, self.name
        );
    }

    /// Deletes an object: immediately for a grace period of 0, by default with its own grace
    /// period.
    pub async fn delete(&self, resource: &Resource, name: &str, grace_seconds: Option<u32>) {
        let deleted = self.try_delete(resource, name, grace_seconds).await;
        deleted.unwrap_or_else(|refused| panic!("{refused}"));
    }

    /// Deletes an object that another client, such as the garbage collector, may have deleted
    /// already.
    pub async fn ensure_deleted(&self, resource: &Resource, name: &str) {
        match self.try_delete(resource, name, None).await {
            Err(refused) if refused.code != 404 => panic!("{refused}"),
            _ => {}
        }
    }

    async fn try_delete(
        &self,
        resource: &Resource,
        name: &str,
        grace_seconds: Option<u32>,
    ) -> Result<Value, Refused> {
        let path = self.object_path(resource, name, "");
        let options = delete_options(grace_seconds);
        self.ask_json(Method::DELETE, &path, &options).await
    }

    /// Deletes all objects with these labels.
    pub async fn delete_all(&self, resource: &Resource, selector: &str, grace_seconds: u32) {
        let path = resource.collection_path(&self.name);
        let path = format!("{path}?labelSelector={selector}");
        let options = delete_options(Some(grace_seconds));
        let deleted = self.ask_json(Method::DELETE, &path, &options).await;
        deleted.unwrap_or_else(|refused| panic!("{refused}"));
    }

    /// List of the objects with these labels, sorted by name by the server; an empty selector
    /// matches all.
    pub async fn list_object(&self, resource: &Resource, selector: &str) -> Value {
        self.list_in(&self.name, resource, selector).await
    }

    /// The objects with these labels.
    pub async fn list(&self, resource: &Resource, selector: &str) -> Vec<Value> {
        items(self.list_object(resource, selector).await)
    }

    /// The objects with these labels in all namespaces.
    pub async fn list_everywhere(&self, resource: &Resource, selector: &str) -> Vec<Value> {
        items(self.list_in("", resource, selector).await)
    }

    async fn list_in(&self, namespace: &str, resource: &Resource, selector: &str) -> Value {
        let path = resource.collection_path(namespace);
        let path = format!("{path}?labelSelector={selector}");
        let list = self.ask_json(Method::GET, &path, &Value::Null).await;
        list.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Watches the objects with these labels from a version on.
    pub async fn watch(
        &self,
        resource: &Resource,
        selector: &str,
        version: &str,
    ) -> impl Stream<Item = WatchEvent<Value>> + Unpin + use<> {
        let path = resource.collection_path(&self.name);
        let path = format!("{path}?watch=true&resourceVersion={version}&labelSelector={selector}");
        let request = Request::get(path).body(Vec::new());
        let request = request.expect("a path makes a request");
        let events = self.client.request_events::<Value>(request).await;
        let events = events.unwrap_or_else(|error| panic!("watch {}: {error}", resource.plural));
        Box::pin(events.map(|event| event.expect("the watch continues")))
    }
}

fn delete_options(grace_seconds: Option<u32>) -> Value {
    match grace_seconds {
        Some(seconds) => json!({"gracePeriodSeconds": seconds}),
        None => json!({}),
    }
}

fn items(mut list: Value) -> Vec<Value> {
    match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use statefulset_client::resource::PERSISTENT_VOLUME_CLAIMS;

    use crate::World;

    #[tokio::test(start_paused = true)]
    async fn object_that_is_gone_counts_as_deleted() {
        let world = World::api_server().await;
        let space = world.namespace("gone").await;
        let deleted = space.try_delete(&PERSISTENT_VOLUME_CLAIMS, "data-0", None);
        assert_eq!(deleted.await.unwrap_err().code, 404);
        space
            .ensure_deleted(&PERSISTENT_VOLUME_CLAIMS, "data-0")
            .await;
    }
}
