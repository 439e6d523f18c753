//! Reads from the API server. No other request exists in this program.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow};
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Objects in one page of a list.
const PAGE: usize = 500;
/// Attempts to read a list whose later pages expire.
const LIST_TRIES: usize = 3;

/// A resource to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path of the group and version.
    base: &'static str,
    /// Name in paths and in rules of rights.
    plural: &'static str,
    /// Name of one object.
    kind: &'static str,
}

/// StatefulSets.
pub const STATEFUL_SETS: Resource = Resource::new("/apis/apps/v1", "statefulsets", "StatefulSet");
/// ControllerRevisions.
pub const REVISIONS: Resource =
    Resource::new("/apis/apps/v1", "controllerrevisions", "ControllerRevision");
/// Pods.
pub const PODS: Resource = Resource::new("/api/v1", "pods", "Pod");

/// PersistentVolumeClaims.
pub const CLAIMS: Resource =
    Resource::new("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim");
/// Events.
pub const EVENTS: Resource = Resource::new("/api/v1", "events", "Event");
/// Nodes.
pub const NODES: Resource = Resource::new("/api/v1", "nodes", "Node");
/// Leases.
pub const LEASES: Resource = Resource::new("/apis/coordination.k8s.io/v1", "leases", "Lease");
/// Cluster roles.
pub const CLUSTER_ROLES: Resource = Resource::new(
    "/apis/rbac.authorization.k8s.io/v1",
    "clusterroles",
    "ClusterRole",
);
/// Bindings of cluster roles.
pub const CLUSTER_ROLE_BINDINGS: Resource = Resource::new(
    "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings",
    "ClusterRoleBinding",
);
/// Flow schemas.
pub const FLOW_SCHEMAS: Resource = Resource::new(
    "/apis/flowcontrol.apiserver.k8s.io/v1",
    "flowschemas",
    "FlowSchema",
);
/// Configurations of validating webhooks.
pub const VALIDATING_WEBHOOKS: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
);
/// Configurations of mutating webhooks.
pub const MUTATING_WEBHOOKS: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
);
/// Validating admission policies.
pub const VALIDATING_POLICIES: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
);

/// A page of a list.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

/// The position of a page.
#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl Resource {
    const fn new(base: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self { base, plural, kind }
    }

    fn path(&self, namespace: Option<&str>) -> String {
        let Self { base, plural, .. } = self;
        match namespace {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
            None => format!("{base}/{plural}"),
        }
    }

    /// The place of the objects, for messages.
    fn place(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{} in namespace {namespace}", self.plural),
            None => self.plural.to_owned(),
        }
    }
}

/// A server that is only read.
#[derive(Clone)]
pub struct Server {
    client: Client,
}

impl Server {
    /// Reads through a client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads one object; `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// The right is missing, or the server doesn't answer.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<String>> {
        let path = format!("{}/{name}", resource.path(namespace));
        match self.read(&path).await {
            Ok(text) => Ok(Some(text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => {
                let object = format!("{} {name}", resource.kind);
                let advice = advice(&error, "get", resource, namespace);
                Err(explained(error, &format!("read {object}{advice}")))
            }
        }
    }

    /// Reads and decodes one object; `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// The object can't be decoded, the right is missing, or the server doesn't answer.
    pub async fn get_value(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        let text = self.get(resource, namespace, name).await?;
        let object = text.map(|text| serde_json::from_str(&text)).transpose();
        object.with_context(|| format!("decode {} {name}", resource.kind))
    }

    /// Reads the server's version.
    ///
    /// # Errors
    ///
    /// The server doesn't answer, or not with a version.
    pub async fn version(&self) -> anyhow::Result<Value> {
        let text = self.read("/version").await.context("read the version")?;
        serde_json::from_str(&text).context("decode the version")
    }

    /// Reads one object that must exist.
    ///
    /// # Errors
    ///
    /// The object doesn't exist or can't be read.
    pub async fn get_text(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<String> {
        let text = self.get(resource, Some(namespace), name).await?;
        let kind = resource.kind;
        text.ok_or_else(|| {
            anyhow!("{kind} {name} doesn't exist in namespace {namespace}; choose another with -n")
        })
    }

    /// Reads and decodes one object that must exist.
    ///
    /// # Errors
    ///
    /// The object doesn't exist, can't be decoded or can't be read.
    pub async fn get_existing<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<T> {
        let text = self.get_text(resource, namespace, name).await?;
        let kind = resource.kind;
        serde_json::from_str(&text).with_context(|| format!("decode {kind} {namespace}/{name}"))
    }

    /// Reads a list page by page; `keep` decodes each object.
    ///
    /// # Errors
    ///
    /// A right is missing, the server doesn't answer, or an object can't be decoded.
    pub async fn list<T>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        let action = || format!("list {}", resource.place(namespace));
        for _ in 1..LIST_TRIES {
            match self.list_once(resource, namespace, &keep).await {
                Err(error) if is_expired(&error) => {}
                read => return read.with_context(action),
            }
        }
        let read = self.list_once(resource, namespace, &keep).await;
        read.with_context(action)
    }

    async fn list_once<T>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: &impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        let path = resource.path(namespace);
        let (mut kept, mut position) = (Vec::new(), String::new());
        loop {
            let page = self.read(&format!("{path}?limit={PAGE}{position}")).await;
            let text = page.map_err(|error| {
                if matches!(&error, kube::Error::Api(status) if status.code == 404) {
                    return anyhow!("the server doesn't serve this resource");
                }
                let advice = advice(&error, "list", resource, namespace);
                let error = anyhow::Error::new(error);
                if advice.is_empty() {
                    error
                } else {
                    error.context(advice)
                }
            })?;
            let page: Page<'_> = serde_json::from_str(&text).context("decode the answer")?;
            for item in page.items.unwrap_or_default() {
                kept.extend(keep(item.get())?);
            }
            match page.metadata.next {
                Some(next) if !next.is_empty() => {
                    position = format!("&continue={}", percent_encoded(&next));
                }
                _ => return Ok(kept),
            }
        }
    }

    async fn read(&self, target: &str) -> Result<String, kube::Error> {
        let request = Request::get(target).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }
}

/// Decodes an object of a list.
///
/// # Errors
///
/// The object can't be decoded.
pub fn decode<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).context("decode an object of the list")
}

fn explained(error: kube::Error, action: &str) -> anyhow::Error {
    anyhow::Error::new(error).context(action.to_owned())
}

/// The missing right, if that is the error.
fn advice(error: &kube::Error, verb: &str, resource: &Resource, namespace: Option<&str>) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            let place = resource.place(namespace);
            format!(" (needs the right to {verb} {place})")
                .trim_start()
                .to_owned()
        }
        _ => String::new(),
    }
}

fn is_expired(error: &anyhow::Error) -> bool {
    let status = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    });
    status == Some(410)
}

/// Encodes a value of a query.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_are_encoded() {
        assert_eq!(percent_encoded("a-Z.9+/=&"), "a-Z.9%2B%2F%3D%26");
    }

    #[test]
    fn paths_have_a_namespace_or_none() {
        assert_eq!(PODS.path(Some("db")), "/api/v1/namespaces/db/pods");
        assert_eq!(STATEFUL_SETS.path(None), "/apis/apps/v1/statefulsets");
    }
}
