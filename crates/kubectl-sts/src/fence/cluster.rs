//! The requests of the fence's commands.

use anyhow::{Context as _, anyhow};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use statefulset_fence::{PartKind, Policy};

/// Group and version of the policies.
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
/// The format of patches.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The result of a probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// The policy denied it.
    Denied,
    /// The server would store it.
    Accepted,
    /// It shows nothing, for this reason.
    Unclear(String),
}

/// The API server, for reads and writes.
pub(super) struct Cluster(Client);

impl Cluster {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Reads an object; `None` if it doesn't exist.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(brief(error)).with_context(|| format!("read {path}")),
        }
    }

    /// Reads the items of a collection.
    pub(super) async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.send(Method::GET, path, None).await;
        let mut list = list
            .map_err(brief)
            .with_context(|| format!("list {path}"))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn create(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        let created = self.send(Method::POST, path, Some(object)).await;
        created
            .map_err(brief)
            .with_context(|| format!("create {} {}", text(object, "/kind"), name(object)))
    }

    pub(super) async fn replace(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        let replaced = self.send(Method::PUT, path, Some(object)).await;
        replaced
            .map_err(brief)
            .with_context(|| format!("replace {} {}", text(object, "/kind"), name(object)))
    }

    pub(super) async fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        let patched = self.send(Method::PATCH, path, Some(patch)).await;
        patched
            .map_err(brief)
            .with_context(|| format!("patch {path}"))
    }

    /// Deletes an object; returns false if it doesn't exist.
    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<bool> {
        match self.send(Method::DELETE, path, None).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(brief(error)).with_context(|| format!("delete {path}")),
        }
    }

    /// Tries to create a policy's probe in a namespace, without storing it.
    pub(super) async fn probe(&self, policy: Policy, namespace: &str) -> Probed {
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": policy.probe_name()}, "revision": 1, "data": {},
        });
        let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions?dryRun=All");
        match self.send(Method::POST, &path, Some(&revision)).await {
            Ok(_) => Probed::Accepted,
            Err(kube::Error::Api(status))
                if status.code == 403 && status.message.ends_with(policy.message()) =>
            {
                Probed::Denied
            }
            Err(kube::Error::Api(status)) => Probed::Unclear(status.message.clone()),
            Err(error) => Probed::Unclear(error.to_string()),
        }
    }

    async fn send(
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

/// Path of the policies or bindings.
pub(super) fn collection(kind: PartKind) -> String {
    let plural = match kind {
        PartKind::Policy => "validatingadmissionpolicies",
        PartKind::Binding => "validatingadmissionpolicybindings",
    };
    format!("{ADMISSION}/{plural}")
}

/// Path of a policy or binding.
pub(super) fn path(kind: PartKind, name: &str) -> String {
    format!("{}/{name}", collection(kind))
}

pub(super) fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

pub(super) fn text(object: &Value, pointer: &str) -> String {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
