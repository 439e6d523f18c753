//! The embedded control plane for tests and demos.

mod access;
#[cfg(feature = "client")]
mod actor;
mod apply;
mod builder;

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

pub use crate::manifests::ManifestError;
pub use access::AccessError;
#[cfg(feature = "client")]
pub use actor::{ActorContext, ForeignActor};
pub use builder::{StartError, TestControlPlaneBuilder};

use kube_test_control_plane_actors::{ActorServer, Handles, Invariants, Leases, Nodes, Pods};
use kube_test_control_plane_api::object::StoreAsIsError;
use kube_test_control_plane_server::certificates::TlsMaterial;
use kube_test_control_plane_server::server::ApiServer;

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
}

impl Drop for TestControlPlane {
    fn drop(&mut self) {
        self.server.stop();
    }
}
