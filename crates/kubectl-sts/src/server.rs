//! Reads from the API server, and dry runs, which store nothing. Only `cluster` sends
//! other requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, anyhow};
use http::Request;
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};

mod discovery;
mod dry_run;
mod lists;
mod refusal;
mod resources;

pub(crate) use discovery::owner_exists;
pub(crate) use dry_run::{DryRun, DryVerb, JSON, Verdict, ask};
pub use lists::{Listed, Unreadable, decode};
use refusal::explained;
pub(crate) use refusal::is_not_served;
pub use resources::*;

/// The API server of the cluster, for reads and dry runs.
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
                self.note_unread(&format!("{error:#}; the gates of v1.36 are used"));
                FeatureGates::default()
            }
        };
        *self.gates.get_or_init(|| gates)
    }

    /// Records a line about a gap in the answer.
    pub fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.insert(text);
    }

    /// Records something that can't be read.
    pub fn note_unread(&self, text: &str) {
        self.note(format!("incomplete: {text}"));
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
    /// The permission is missing, or the server doesn't respond.
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
    /// The object can't be decoded, the permission is missing, or the server doesn't respond.
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
    /// The server doesn't respond, or not with a version.
    pub async fn version(&self) -> anyhow::Result<Value> {
        let text = self.read("/version").await.context("read the version")?;
        serde_json::from_str(&text).context("decode the version")
    }

    /// Reads a page of a pod's HTTPS port.
    ///
    /// # Errors
    ///
    /// The permission is missing, or the pod doesn't respond.
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
    /// A permission is missing, or the server doesn't respond.
    pub async fn list<T>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        let listed: Listed<Vec<T>> = self.list_all(resource, namespace, keep).await?;
        for unreadable in &listed.unreadable {
            self.note_unread(&unreadable.to_string());
        }
        Ok(listed.kept)
    }

    /// Reads a list as [`Self::list`] does, and returns the objects that can't be decoded.
    ///
    /// # Errors
    ///
    /// A permission is missing, or the server doesn't respond.
    pub async fn list_all<T, C: Default + Extend<T>>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        keep: impl Fn(&str) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Listed<C>> {
        let read = async |path: &str| self.read(path).await;
        lists::read_all(read, resource, namespace, keep).await
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
}
