//! The control plane as tests and demos start it.

mod builder;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

pub use builder::{StartError, TestControlPlaneBuilder};

use crate::actors::{Handles, Pods};
use crate::auth::{Identity, ServiceAs};
use crate::kubeconfig::{self, WriteKubeconfigError};
use crate::server::ApiServer;
use crate::tls::TlsMaterial;

/// How long stopping waits for the tasks to end by themselves.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane. Dropping it ends its tasks.
#[derive(Debug)]
pub struct TestControlPlane {
    server: ApiServer,
    actors: Handles,
    tasks: JoinSet<()>,
    endpoint: Option<Endpoint>,
}

/// The loopback port of a control plane.
#[derive(Debug)]
struct Endpoint {
    address: SocketAddr,
    tls: TlsMaterial,
}

impl TestControlPlane {
    /// A control plane to configure and start. Nothing is switched on: no actors, no port.
    pub fn builder() -> TestControlPlaneBuilder {
        TestControlPlaneBuilder::default()
    }

    /// The API server: a tower service, with store, audit log and fault rules.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The API server as a service for any client.
    pub fn service(&self) -> ApiServer {
        self.server.clone()
    }

    /// Acts on pods: makes them crash, end or behave otherwise.
    pub fn pods(&self) -> Pods<'_> {
        Pods::new(&self.server, &self.actors)
    }

    /// A client of this control plane, without sockets, in the namespace `default`.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The API server as a service whose requests are those of `identity`, who may do what its roles
    /// allow: to run a whole test with nothing but the role that a program ships with.
    pub fn service_as(&self, identity: Identity) -> ServiceAs {
        ServiceAs::new(self.service(), identity)
    }

    /// As [`client`](Self::client), for another user.
    #[cfg(feature = "client")]
    pub fn client_as(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// The URL of the port; none if it wasn't opened.
    pub fn url(&self) -> Option<String> {
        let address = self.endpoint.as_ref()?.address;
        Some(format!("https://{address}"))
    }

    /// The administrator's kubeconfig; none if there is no port.
    pub fn kubeconfig(&self) -> Option<Value> {
        let endpoint = self.endpoint.as_ref()?;
        Some(kubeconfig::kubeconfig(&self.url()?, &endpoint.tls))
    }

    /// Writes the administrator's kubeconfig to a file, all at once; nothing if there is no port.
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

    /// Ends watches, connections and actors, and waits for them.
    pub async fn stop(mut self) {
        self.server.stop();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("some tasks did not end in time and are aborted");
        }
        self.tasks.shutdown().await;
    }
}

impl Drop for TestControlPlane {
    fn drop(&mut self) {
        self.server.stop();
    }
}
