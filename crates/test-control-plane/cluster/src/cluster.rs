//! One API over the embedded control plane, over real binaries and over an existing cluster.
//!
//! [`TestCluster::builder`] picks by the environment, as envtest does:
//!
//! | variable | meaning |
//! |---|---|
//! | `USE_EXISTING_CLUSTER=true` | the cluster of the kubeconfig, found as kube-rs finds it; `false` is as if unset |
//! | `KUBEBUILDER_ASSETS=folder` | `kube-apiserver` and `etcd` in this folder are started, and stopped at the end |
//! | `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=30s` | how long they may take to be ready; 20 s if unset |
//! | `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=10s` | how long they may take to end before they are killed; 20 s if unset |
//! | none of them | the embedded control plane |
//!
//! An empty variable counts as unset. A setting that can't be used is an error: never is another
//! backend taken instead.
//!
//! What every backend can do is a method of [`TestCluster`]. What only the embedded server can do
//! (faults, the audit log, the clock, looking into the store) is reached through
//! [`TestCluster::embedded`], which is an error elsewhere; what only one backend can be told before
//! it starts is told in a closure that runs for no other.
//!
//! Actors ([`TestClusterBuilder::actors`]) run in every backend: beside a real server they are
//! clients like others, since that has no kubelet, scheduler or garbage collector of its own.
//!
//! A real server lives in real time: a test that pauses tokio's time must resume it before it
//! starts one. [`Backend::is_embedded`] tells beforehand.

mod backend;
mod binaries;
mod builder;
mod error;
mod existing;
mod namespaces;
mod process;
mod real;
mod simulated;

use std::path::Path;

use serde_json::Value;

pub use backend::Backend;
pub use binaries::Assets;
pub use builder::TestClusterBuilder;
pub use error::{ClusterError, NotEmbedded};
pub use real::RealControlPlane;
pub use simulated::NoActors;

use kube_test_control_plane_actors::{Nodes, Pods};
use kube_test_control_plane_server::auth::Identity;

use crate::control_plane::{AccessError, TestControlPlane};
use crate::kubeconfig;

/// A running cluster to test against, of whichever backend.
#[derive(Debug)]
pub enum TestCluster {
    /// The embedded control plane.
    Embedded(Box<TestControlPlane>),
    /// A real API server.
    Real(Box<RealControlPlane>),
}

impl TestCluster {
    /// A cluster to configure and start.
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    /// A client with every right, in the namespace `default`, or that of the kubeconfig of an
    /// existing cluster.
    pub fn client(&self) -> kube::Client {
        match self {
            Self::Embedded(plane) => plane.client(),
            Self::Real(real) => real.client(),
        }
    }

    /// A client with the rights of another user. A real server is asked to impersonate the user.
    ///
    /// # Errors
    ///
    /// The user can't be named in a header.
    pub fn client_as(&self, identity: &Identity) -> Result<kube::Client, ClusterError> {
        match self {
            Self::Embedded(plane) => Ok(plane.client_as(identity.clone())),
            Self::Real(real) => real.client_as(identity),
        }
    }

    /// Acts on pods: makes them crash, end or behave otherwise.
    ///
    /// # Errors
    ///
    /// No actors run beside this real server.
    pub fn pods(&self) -> Result<Pods<'_>, NoActors> {
        match self {
            Self::Embedded(plane) => Ok(plane.pods()),
            Self::Real(real) => real.pods(),
        }
    }

    /// Acts on nodes: cuts them off, brings them back, taints them.
    ///
    /// # Errors
    ///
    /// No actors run beside this real server.
    pub fn nodes(&self) -> Result<Nodes<'_>, NoActors> {
        match self {
            Self::Embedded(plane) => Ok(plane.nodes()),
            Self::Real(real) => real.nodes(),
        }
    }

    /// The URL of the API server; none of an embedded one without a port.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Embedded(plane) => plane.url(),
            Self::Real(real) => Some(real.url()),
        }
    }

    /// The administrator's kubeconfig.
    ///
    /// # Errors
    ///
    /// The embedded control plane was not told to listen.
    pub fn kubeconfig(&self) -> Result<Value, AccessError> {
        match self {
            Self::Embedded(plane) => plane.kubeconfig().ok_or(AccessError::NoPort),
            Self::Real(real) => Ok(real.kubeconfig()),
        }
    }

    /// A kubeconfig with the rights of another user.
    ///
    /// # Errors
    ///
    /// The embedded control plane was not told to listen.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        match self {
            Self::Embedded(plane) => plane.kubeconfig_for(identity),
            Self::Real(real) => Ok(real.kubeconfig_for(identity)),
        }
    }

    /// Writes the administrator's kubeconfig to a file, all at once.
    ///
    /// # Errors
    ///
    /// There is no port, or the file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), AccessError> {
        kubeconfig::write_atomically(path, &format!("{:#}\n", self.kubeconfig()?))?;
        Ok(())
    }

    /// Makes a new namespace whose name starts so. In an existing cluster it is deleted at the end.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub async fn create_namespace(&self, prefix: &str) -> Result<String, ClusterError> {
        match self {
            Self::Embedded(plane) => namespaces::create(&plane.client(), prefix).await,
            Self::Real(real) => real.create_namespace(prefix).await,
        }
    }

    /// The embedded control plane, which can do more than a real one: faults, audit, clock.
    ///
    /// # Errors
    ///
    /// It is a real one.
    pub fn embedded(&self) -> Result<&TestControlPlane, NotEmbedded> {
        match self {
            Self::Embedded(plane) => Ok(plane),
            Self::Real(real) => Err(real.not_embedded()),
        }
    }

    /// Ends it: the embedded control plane or the processes that were started. An existing cluster
    /// goes on, without the namespaces that were made here.
    ///
    /// # Errors
    ///
    /// A process did not end in time, and was killed.
    pub async fn stop(self) -> Result<(), ClusterError> {
        match self {
            Self::Embedded(plane) => {
                plane.stop().await;
                Ok(())
            }
            Self::Real(real) => real.stop().await,
        }
    }
}
