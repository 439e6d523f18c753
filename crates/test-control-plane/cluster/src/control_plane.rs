//! The embedded control plane for tests and demos.

mod access;
#[cfg(feature = "client")]
mod actor;
mod apply;
mod builder;

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub use crate::manifests::ManifestError;
pub use access::AccessError;
#[cfg(feature = "client")]
pub use actor::{ActorContext, ForeignActor};
pub use builder::{StartError, TestControlPlaneBuilder};

use kube_test_control_plane_actors::{ActorServer, Handles, Invariants, Leases, Nodes, Pods};
use kube_test_control_plane_api::object::StoreAsIsError;
use kube_test_control_plane_server::auth::Identity;
use kube_test_control_plane_server::certificates::{CertificateError, TlsMaterial};
use kube_test_control_plane_server::in_process::ServiceAs;
use kube_test_control_plane_server::server::ApiServer;

use crate::kubeconfig::{self, Credential, WriteKubeconfigError};
use crate::manifests;

/// The user agent of the control plane's own requests.
const AGENT: &str = "test-control-plane/access";

/// The time that the tasks get to end when stopping.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane. Dropping it stops its tasks.
#[derive(Debug)]
pub struct TestControlPlane {
    server: ApiServer,
    actors: Handles,
    tasks: JoinSet<()>,
    endpoint: Option<Box<Endpoint>>,
    kubelets: Option<SocketAddr>,
}

/// The loopback port of a control plane.
#[derive(Debug)]
struct Endpoint {
    address: SocketAddr,
    tls: TlsMaterial,
}

impl TestControlPlane {
    /// Returns a builder for a control plane. By default it has no actors and no port.
    pub fn builder() -> TestControlPlaneBuilder {
        TestControlPlaneBuilder::default()
    }

    /// Returns the API server: a tower service with store, audit log and fault rules.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the API server as a service for any client.
    pub fn service(&self) -> ApiServer {
        self.server.clone()
    }

    /// Stores an object as an older server has left it, see [`ApiServer::store_raw`]. Controllers
    /// and updates must handle such objects, which break today's rules or have fields whose feature
    /// gates are off.
    ///
    /// # Errors
    ///
    /// Those of [`ApiServer::store_raw`].
    pub fn store_raw(&self, object: &Value) -> Result<(), StoreAsIsError> {
        self.server.store_raw(object.to_string().as_bytes())
    }

    /// Acts on nodes: disconnects, reconnects and taints them.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes::new(&ActorServer::Embedded(self.service()), &self.actors)
    }

    /// Acts on pods: makes them crash, end or change their behaviour.
    pub fn pods(&self) -> Pods<'_> {
        Pods::new(&ActorServer::Embedded(self.service()), &self.actors)
    }

    /// Acts on leases: takes them from their holders.
    pub fn leases(&self) -> Leases {
        Leases::new(&ActorServer::Embedded(self.service()))
    }

    /// Returns the invariant violations so far.
    pub fn invariants(&self) -> &Invariants {
        &self.actors.invariants
    }

    /// Returns a client without sockets, in the namespace `default`.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Returns the URL of the port, or `None` if there is none.
    pub fn url(&self) -> Option<String> {
        let address = self.endpoint.as_ref()?.address;
        Some(format!("https://{address}"))
    }

    /// Returns the URL of the kubelets' port, or `None` if there is none.
    pub fn kubelet_url(&self) -> Option<String> {
        let address = self.kubelets?;
        Some(format!("https://{address}"))
    }

    /// Stops watches, connections and actors and waits for them.
    ///
    /// # Panics
    ///
    /// Panics if an actor or a connection has panicked.
    pub async fn stop(mut self) {
        self.server.stop();
        let ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Err(err) = ended
                    && let Ok(panic) = err.try_into_panic()
                {
                    resume_unwind(panic);
                }
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("aborting tasks that did not stop in time");
        }
        self.tasks.shutdown().await;
    }

    /// Returns the API server as a service that sends requests as `identity`, with the permissions
    /// of its roles. Use it to run a whole test with only the role that a program ships with.
    pub fn service_as(&self, identity: Identity) -> ServiceAs {
        ServiceAs::new(self.service(), identity)
    }

    /// As [`client`](Self::client), for another user.
    #[cfg(feature = "client")]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// Returns the administrator's kubeconfig; `None` if there is no port.
    pub fn kubeconfig(&self) -> Option<Value> {
        let Endpoint { tls, .. } = self.endpoint.as_deref()?;
        let credential = Credential::Certificate(&tls.admin);
        let url = self.url()?;
        Some(kubeconfig::kubeconfig(
            &url,
            &tls.ca_pem,
            "admin",
            credential,
        ))
    }

    /// Returns a user's kubeconfig with a client certificate. A user with several groups or with
    /// extra values, such as a service account, gets a token instead, because a certificate can't
    /// carry them.
    ///
    /// # Errors
    ///
    /// There is no port, or generating the certificate failed.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let user = &identity.name;
        match tls.client(identity) {
            Ok(certificate) => {
                let credential = Credential::Certificate(&certificate);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(CertificateError::TooMuch(_)) => {
                let token = self.issue_token(identity);
                let credential = Credential::Token(&token);
                Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Returns a kubeconfig with a bearer token, either from [`issue_token`](Self::issue_token) or
    /// [`service_account_token`](Self::service_account_token), or from the tokens configured at the
    /// start.
    ///
    /// # Errors
    ///
    /// There is no port.
    pub fn kubeconfig_with_token(&self, user: &str, token: &str) -> Result<Value, AccessError> {
        let Endpoint { tls, .. } = self.endpoint.as_deref().ok_or(AccessError::NoPort)?;
        let url = self.url().ok_or(AccessError::NoPort)?;
        let credential = Credential::Token(token);
        Ok(kubeconfig::kubeconfig(&url, &tls.ca_pem, user, credential))
    }

    /// Issues a bearer token for a user, valid until the control plane stops.
    pub fn issue_token(&self, identity: &Identity) -> String {
        self.server.issue_token(identity)
    }

    /// Requests a token of an existing service account, as `kubectl create token` does. It is valid
    /// for an hour.
    ///
    /// # Errors
    ///
    /// The service account does not exist.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<String, AccessError> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({"spec": {}});
        let (_, answer) = self
            .server
            .call_json(Method::POST, &path, AGENT, &body)
            .await;
        match answer.pointer("/status/token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(AccessError::Token {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                message: answer["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Writes the administrator's kubeconfig to a file atomically; does nothing without a port.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), WriteKubeconfigError> {
        match self.kubeconfig() {
            Some(config) => kubeconfig::write_atomically(path, &format!("{config:#}\n")),
            None => Ok(()),
        }
    }

    /// Writes a user's kubeconfig to a file atomically: see
    /// [`kubeconfig_for`](Self::kubeconfig_for).
    ///
    /// # Errors
    ///
    /// There is no port, generating the certificate failed, or the file can't be written.
    pub fn write_kubeconfig_for(
        &self,
        identity: &Identity,
        path: &Path,
    ) -> Result<(), AccessError> {
        let config = self.kubeconfig_for(identity)?;
        kubeconfig::write_atomically(path, &format!("{config:#}\n"))?;
        Ok(())
    }

    /// Applies the objects of a YAML or JSON file, or of all such files of a folder, as
    /// `kubectl apply --server-side --force-conflicts` does: definitions first, then namespaces,
    /// then the others in the order of their files. An object without a namespace goes to
    /// `default`.
    ///
    /// # Errors
    ///
    /// A file can't be read, a document is no object, or the server refuses one. The objects before
    /// it are applied.
    pub async fn apply(&self, path: impl AsRef<Path>) -> Result<(), ManifestError> {
        apply::apply_all(self.server(), manifests::read(path.as_ref())?).await
    }
}

impl Drop for TestControlPlane {
    fn drop(&mut self) {
        self.server.stop();
    }
}
