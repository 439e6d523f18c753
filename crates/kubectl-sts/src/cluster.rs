//! The API server, for commands that write.

use anyhow::{Context as _, anyhow};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;

/// The format of patches.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The API server, for reads and writes.
pub(crate) struct Cluster(Client);

impl Cluster {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Reads an object; `None` if it doesn't exist.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(brief(error)).with_context(|| format!("read {path}")),
        }
    }

    /// Reads the items of a collection.
    pub(crate) async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.send(Method::GET, path, None).await;
        let mut list = list
            .map_err(brief)
            .with_context(|| format!("list {path}"))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        let created = self.send(Method::POST, path, Some(object)).await;
        created
            .map_err(brief)
            .with_context(|| format!("create {} {}", text(object, "/kind"), name(object)))
    }

    pub(crate) async fn replace(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        let replaced = self.send(Method::PUT, path, Some(object)).await;
        replaced
            .map_err(brief)
            .with_context(|| format!("replace {} {}", text(object, "/kind"), name(object)))
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        let patched = self.send(Method::PATCH, path, Some(patch)).await;
        patched
            .map_err(brief)
            .with_context(|| format!("patch {path}"))
    }

    /// Deletes an object; returns false if it doesn't exist.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<bool> {
        match self.send(Method::DELETE, path, None).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(brief(error)).with_context(|| format!("delete {path}")),
        }
    }

    /// Sends a request with a JSON body, and decodes the response.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let format = match method {
            Method::PATCH => MERGE_PATCH,
            _ => "application/json",
        };
        let body = body.map(|body| body.to_string().into_bytes());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format)
            .body(body.unwrap_or_default());
        let text = self
            .0
            .request_text(request.map_err(kube::Error::HttpError)?)
            .await?;
        serde_json::from_str(&text).map_err(kube::Error::SerdeError)
    }
}

/// The server's message alone.
fn brief(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!(status.message.clone()),
        other => other.into(),
    }
}

pub(crate) fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

pub(crate) fn text(object: &Value, pointer: &str) -> String {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
