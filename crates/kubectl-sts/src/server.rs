//! Reads from the API server, and dry runs, which store nothing. No other request exists in this
//! program.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, anyhow};
use http::{Method, Request};
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};

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

/// Connections to the ports of pods.
const POD_PROXIES: Resource = Resource::new("/api/v1", "pods/proxy", "Pod");
/// PersistentVolumeClaims.
pub const CLAIMS: Resource =
    Resource::new("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim");
/// Events.
pub const EVENTS: Resource = Resource::new("/api/v1", "events", "Event");
/// Nodes.
pub const NODES: Resource = Resource::new("/api/v1", "nodes", "Node");
/// Disruption budgets.
pub const BUDGETS: Resource = Resource::new(
    "/apis/policy/v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
);
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

/// The objects of a list.
pub struct Listed<T> {
    /// Those that the caller keeps.
    pub kept: Vec<T>,
    /// Those that can't be decoded.
    pub unreadable: Vec<Unreadable>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

/// An object that can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    kind: &'static str,
    namespace: String,
    /// Its name; empty if not even that can be read.
    pub name: String,
    /// Uids of its owners.
    pub owners: Vec<String>,
    reason: String,
}

impl Unreadable {
    fn new(kind: &'static str, text: &str, error: &anyhow::Error) -> Self {
        let object: Value = serde_json::from_str(text).unwrap_or_default();
        let member = |name: &str| {
            let found = object.pointer(&format!("/metadata/{name}"));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let owners = object.pointer("/metadata/ownerReferences");
        let owners = owners.and_then(Value::as_array).into_iter().flatten();
        let uids = owners.filter_map(|owner| owner.get("uid")?.as_str());
        Self {
            kind,
            namespace: member("namespace"),
            name: member("name"),
            owners: uids.map(str::to_owned).collect(),
            reason: error.root_cause().to_string(),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            reason,
            ..
        } = self;
        let dash = if namespace.is_empty() { "" } else { "/" };
        write!(
            f,
            "{kind} {namespace}{dash}{name} cannot be decoded: {reason}"
        )
    }
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
    gates: Arc<OnceLock<FeatureGates>>,
    notes: Arc<Mutex<BTreeSet<String>>>,
}

impl Server {
    /// Reads through a client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            gates: Arc::default(),
            notes: Arc::default(),
        }
    }

    /// Sets the gates of another server, whose objects this one has.
    #[must_use]
    pub fn with_gates(self, gates: FeatureGates) -> Self {
        let gates = Arc::new(OnceLock::from(gates));
        Self { gates, ..self }
    }

    /// The gates of the built-in controller of the server's version.
    pub async fn gates(&self) -> FeatureGates {
        if let Some(gates) = self.gates.get() {
            return *gates;
        }
        let minor = self.version().await.map(|version| minor(&version));
        let gates = match minor {
            Ok(Some(minor)) => {
                let version = KubeVersion::v1(minor);
                FeatureGates::at(version.clamp(KubeVersion::EMULATION_FLOOR, KubeVersion::NEWEST))
            }
            Ok(None) => FeatureGates::default(),
            Err(error) => {
                self.note(format!("{error:#}; the gates of v1.36 are used"));
                FeatureGates::default()
            }
        };
        *self.gates.get_or_init(|| gates)
    }

    /// Records something that an answer lacks.
    pub fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.insert(text);
    }

    /// Returns and removes the notes.
    pub fn take_notes(&self) -> BTreeSet<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *notes)
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
                let error = explained(error, "get", resource, namespace);
                Err(error.context(format!("read {} {name}", resource.kind)))
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

    /// Sends a set as a dry run, which stores nothing: the changed state of the set of this name, or
    /// a new set. Returns the state that the server would store; `None`, with a note, without the
    /// right or if the set was changed meanwhile.
    ///
    /// # Errors
    ///
    /// The server would refuse the change, or doesn't answer.
    pub async fn dry_run(
        &self,
        namespace: &str,
        name: Option<&str>,
        set: &Value,
    ) -> anyhow::Result<Option<Value>> {
        let sets = STATEFUL_SETS.path(Some(namespace));
        let (method, verb, path) = match name {
            Some(name) => (Method::PUT, "update", format!("{sets}/{name}")),
            None => (Method::POST, "create", sets),
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?dryRun=All"))
            .header("content-type", "application/json")
            .body(set.to_string().into_bytes())?;
        match self.client.request_text(request).await {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .context("decode the answer to the dry run"),
            Err(kube::Error::Api(status)) if status.message.contains(&format!("cannot {verb}")) => {
                let place = STATEFUL_SETS.place(Some(namespace));
                self.note(format!(
                    "the server's own check of the change (needs the right to {verb} {place})"
                ));
                Ok(None)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.note("the server's own check: the set was changed meanwhile".to_owned());
                Ok(None)
            }
            Err(kube::Error::Api(status)) => Err(anyhow!(
                "the server would refuse the change: {}",
                status.message
            )),
            Err(error) => Err(anyhow::Error::new(error).context("check the change")),
        }
    }

    /// Reads a page of a pod's HTTPS port.
    ///
    /// # Errors
    ///
    /// The right is missing, or the pod doesn't answer.
    pub async fn proxied(
        &self,
        namespace: &str,
        pod: &str,
        port: &str,
        page: &str,
    ) -> anyhow::Result<String> {
        let target = format!("/api/v1/namespaces/{namespace}/pods/https:{pod}:{port}/proxy/{page}");
        let read = self.read(&target).await;
        read.map_err(|error| {
            let error = explained(error, "get", &POD_PROXIES, Some(namespace));
            error.context(format!("read /{page} of pod {pod}"))
        })
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

    /// Reads a list page by page; `keep` decodes each object. One that can't be decoded is noted and
    /// left out.
    ///
    /// # Errors
    ///
    /// A right is missing, or the server doesn't answer.
    pub async fn list<T>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        let listed = self.list_all(resource, namespace, keep).await?;
        for unreadable in &listed.unreadable {
            self.note(unreadable.to_string());
        }
        Ok(listed.kept)
    }

    /// Reads a list as [`Self::list`] does, and returns the objects that can't be decoded.
    ///
    /// # Errors
    ///
    /// A right is missing, or the server doesn't answer.
    pub async fn list_all<T>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Listed<T>> {
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
    ) -> anyhow::Result<Listed<T>> {
        let path = resource.path(namespace);
        let (mut listed, mut position) = (Listed::default(), String::new());
        loop {
            let page = self.read(&format!("{path}?limit={PAGE}{position}")).await;
            let text = page.map_err(|error| {
                if matches!(&error, kube::Error::Api(status) if status.code == 404) {
                    return anyhow::Error::new(Refusal {
                        code: 404,
                        message: "the server doesn't serve this resource".to_owned(),
                    });
                }
                explained(error, "list", resource, namespace)
            })?;
            let page: Page<'_> = serde_json::from_str(&text).context("decode the answer")?;
            for item in page.items.unwrap_or_default() {
                match keep(item.get()) {
                    Ok(kept) => listed.kept.extend(kept),
                    Err(error) => {
                        let unreadable = Unreadable::new(resource.kind, item.get(), &error);
                        listed.unreadable.push(unreadable);
                    }
                }
            }
            match page.metadata.next {
                Some(next) if !next.is_empty() => {
                    position = format!("&continue={}", percent_encoded(&next));
                }
                _ => return Ok(listed),
            }
        }
    }

    async fn read(&self, target: &str) -> Result<String, kube::Error> {
        let request = Request::get(target).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }
}

/// The minor version of a Kubernetes 1 server. Some distributions write `36+`.
pub(crate) fn minor(version: &Value) -> Option<u32> {
    let member = |name: &str| version.get(name).and_then(Value::as_str);
    let minor = member("minor").filter(|_| member("major") == Some("1"))?;
    minor.trim_end_matches('+').parse().ok()
}

/// Decodes an object of a list.
///
/// # Errors
///
/// The object can't be decoded.
pub fn decode<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).context("decode an object of the list")
}

/// An answer of the API server that is an error.
#[derive(Debug)]
struct Refusal {
    code: u16,
    message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The error of a request, with the missing right if that is the cause.
fn explained(
    error: kube::Error,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
) -> anyhow::Error {
    let kube::Error::Api(status) = error else {
        return error.into();
    };
    let refusal = anyhow::Error::new(Refusal {
        code: status.code,
        message: status.message.clone(),
    });
    match status.code {
        403 => {
            let place = resource.place(namespace);
            refusal.context(format!("needs the right to {verb} {place}"))
        }
        _ => refusal,
    }
}

/// True if a list failed because the server doesn't serve the resource.
pub(crate) fn is_not_served(error: &anyhow::Error) -> bool {
    has_code(error, 404)
}

fn is_expired(error: &anyhow::Error) -> bool {
    has_code(error, 410)
}

fn has_code(error: &anyhow::Error, code: u16) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| refusal.code == code)
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

    #[tokio::test]
    async fn gates_follow_the_version_of_the_server() {
        for (minor, emulated) in [("34", 34), ("36+", 36), ("41", 37)] {
            let version = format!(r#"{{"major":"1","minor":"{minor}"}}"#);
            let answer = move |_: Request<kube::client::Body>| {
                let body = kube::client::Body::from(version.clone().into_bytes());
                async { Ok::<_, tower::BoxError>(http::Response::new(body)) }
            };
            let server = Server::new(Client::new(tower::service_fn(answer), "default"));
            let gates = server.gates().await;
            assert_eq!(
                gates.emulation_version,
                KubeVersion::v1(emulated),
                "{minor}"
            );
        }
    }

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
