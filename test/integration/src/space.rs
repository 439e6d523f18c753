//! The objects of one namespace, as JSON.

use futures::{Stream, StreamExt as _};
use http::{Method, Request};
use kube::core::WatchEvent;
use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};
use statefulset_client::resource::Resource;

/// Services, which no controller of this project touches.
pub const SERVICES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "services",
    kind: "Service",
};

/// Nodes, which stand in no namespace.
pub const NODES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "nodes",
    kind: "Node",
};

/// How often a change is tried while others change the object too.
const TRIES_MAX: usize = 50;

/// A request that was answered with a failure.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {code} {reason}: {message}")]
pub struct Refused {
    /// What was asked.
    pub action: String,
    /// The HTTP status code; 0 if there was no answer.
    pub code: u16,
    /// The reason, such as `Conflict`.
    pub reason: String,
    /// The server's words.
    pub message: String,
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug)]
pub enum Patch {
    /// RFC 7386.
    Merge,
    /// By the merge keys of the types.
    Strategic,
}

impl Patch {
    /// How it is named in a request.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// One namespace of a cluster, whatever its API server is.
#[derive(Clone)]
pub struct Space {
    client: kube::Client,
    name: String,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test's harness panics where the test fails"
)]
impl Space {
    /// A namespace that exists.
    pub fn new(client: kube::Client, name: &str) -> Self {
        let name = name.to_owned();
        Self { client, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another namespace of the same cluster; the empty name is that of what stands in none.
    #[must_use]
    pub fn elsewhere(&self, name: &str) -> Self {
        Self::new(self.client.clone(), name)
    }

    /// Asks for anything.
    ///
    /// # Errors
    ///
    /// What the server or the way to it answered.
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
            // As a Go client does: the bytes of a revision's data are stored as they come.
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

    /// Reads an object, or a subresource of it; none if it isn't there.
    pub async fn find(&self, resource: &Resource, name: &str, subresource: &str) -> Option<Value> {
        let path = self.object_path(resource, name, subresource);
        match self.ask_json(Method::GET, &path, &Value::Null).await {
            Ok(object) => Some(object),
            Err(refused) if refused.code == 404 => None,
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Reads an object in another media type than JSON, such as `application/yaml`.
    pub async fn get_as(&self, resource: &Resource, name: &str, media_type: &str) -> String {
        let request = Request::get(self.object_path(resource, name, ""))
            .header("accept", media_type)
            .body(Vec::new());
        let request = request.expect("a path makes a request");
        let text = self.client.request_text(request).await;
        text.unwrap_or_else(|error| panic!("read {} as {media_type}: {error}", resource.kind))
    }

    /// Reads an object that must be there.
    pub async fn get(&self, resource: &Resource, name: &str) -> Value {
        let found = self.find(resource, name, "").await;
        found.unwrap_or_else(|| panic!("{} {}/{name} is gone", resource.kind, self.name))
    }

    /// Writes an object, or a subresource of it, as it is given.
    ///
    /// # Errors
    ///
    /// Why the server refuses it.
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

    /// Reads an object, changes it, and writes it or its subresource; again if somebody else was
    /// faster.
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

    /// Deletes an object; at once if there is no grace, else as it wants.
    pub async fn delete(&self, resource: &Resource, name: &str, grace_seconds: Option<u32>) {
        let path = self.object_path(resource, name, "");
        let options = delete_options(grace_seconds);
        let deleted = self.ask_json(Method::DELETE, &path, &options).await;
        deleted.unwrap_or_else(|refused| panic!("{refused}"));
    }

    /// Deletes all objects with these labels.
    pub async fn delete_all(&self, resource: &Resource, selector: &str, grace_seconds: u32) {
        let path = resource.collection_path(&self.name);
        let path = format!("{path}?labelSelector={selector}");
        let options = delete_options(Some(grace_seconds));
        let deleted = self.ask_json(Method::DELETE, &path, &options).await;
        deleted.unwrap_or_else(|refused| panic!("{refused}"));
    }

    /// The list of the objects with these labels, which the server sorts by name; an empty
    /// selector means all.
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

    /// What happens to the objects with these labels after a version.
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
        Box::pin(events.map(|event| event.expect("a watch goes on")))
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
