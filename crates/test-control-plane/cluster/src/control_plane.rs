//! The control plane as tests and demos start it.

mod access;
mod builder;

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::time::Duration;

use tokio::task::JoinSet;

pub use access::AccessError;
pub use builder::{StartError, TestControlPlaneBuilder};

use kube_test_control_plane_actors::{ActorServer, Handles, Invariants, Leases, Nodes, Pods};
use kube_test_control_plane_server::certificates::TlsMaterial;
use kube_test_control_plane_server::server::ApiServer;

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

    /// Acts on nodes: cuts them off, brings them back, taints them.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes::new(&ActorServer::Embedded(self.service()), &self.actors)
    }

    /// Acts on pods: makes them crash, end or behave otherwise.
    pub fn pods(&self) -> Pods<'_> {
        Pods::new(&ActorServer::Embedded(self.service()), &self.actors)
    }

    /// Acts on leases: takes them from their holders.
    pub fn leases(&self) -> Leases {
        Leases::new(&ActorServer::Embedded(self.service()))
    }

    /// What has happened that must never happen.
    pub fn invariants(&self) -> &Invariants {
        &self.actors.invariants
    }

    /// A client of this control plane, without sockets, in the namespace `default`.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The URL of the port; none if it wasn't opened.
    pub fn url(&self) -> Option<String> {
        let address = self.endpoint.as_ref()?.address;
        Some(format!("https://{address}"))
    }

    /// Ends watches, connections and actors, and waits for them.
    ///
    /// # Panics
    ///
    /// If an actor or a connection has panicked.
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
