//! One API for the embedded control plane, real binaries and an existing cluster.
//!
//! [`TestCluster::builder`] selects the backend from the environment, as envtest does:
//!
//! | variable | meaning |
//! |---|---|
//! | `USE_EXISTING_CLUSTER=true` | kube-rs's default kubeconfig names the cluster; `false` is as if unset |
//! | `KUBEBUILDER_ASSETS=folder` | starts `kube-apiserver` and `etcd` from this folder and stops them at the end |
//! | `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=30s` | maximum time until they are ready; default 20 s |
//! | `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=10s` | maximum time until they exit before they are killed; default 20 s |
//! | none of them | the embedded control plane |
//!
//! An empty variable counts as unset. An unusable setting is an error; there is no fallback to
//! another backend.
//!
//! Methods of [`TestCluster`] work with all backends. [`TestCluster::embedded`] gives access to the
//! features of the embedded server (faults, the audit log, the clock, the store); it fails for
//! other backends. A closure holds the start options of a single backend, and runs only for that
//! backend.
//!
//! Actors ([`TestClusterBuilder::actors`]) run in all backends. With a real server they are
//! ordinary clients that replace its missing kubelet, scheduler and garbage collector.
//!
//! A real server runs in real time. A test that pauses tokio's time must resume it before it starts
//! one; check [`Backend::is_embedded`] first.

mod backend;
mod binaries;
mod error;
mod existing;
mod namespaces;
mod process;
mod real;
mod request;
mod simulated;
mod variables;

use std::path::Path;

use serde_json::Value;

pub use backend::Backend;
pub use binaries::Assets;
pub use error::{BinaryError, ClusterError, ConnectError, NotEmbedded, RequestError};
pub use real::RealControlPlane;
pub use simulated::NoActors;

use kube_test_control_plane_actors::{ActorsConfig, Nodes, Pods};
use kube_test_control_plane_server::auth::Identity;

use self::real::Origin;
use crate::control_plane::{AccessError, TestControlPlane, TestControlPlaneBuilder};
use crate::kubeconfig;

/// A running cluster of any backend.
#[derive(Debug)]
pub enum TestCluster {
    /// The embedded control plane.
    Embedded(Box<TestControlPlane>),
    /// A real API server.
    Real(Box<RealControlPlane>),
}

impl TestCluster {
    /// Returns a builder for a cluster.
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    /// Returns a client with all permissions, in the namespace `default`, or that of an existing
    /// cluster's kubeconfig.
    pub fn client(&self) -> kube::Client {
        match self {
            Self::Embedded(plane) => plane.client(),
            Self::Real(real) => real.client(),
        }
    }

    /// Returns a client with the permissions of another user. A real server impersonates the user.
    ///
    /// # Errors
    ///
    /// A header can't carry the user's name.
    pub fn client_as(&self, identity: &Identity) -> Result<kube::Client, ClusterError> {
        match self {
            Self::Embedded(plane) => Ok(plane.client_as(identity.clone())),
            Self::Real(real) => real.client_as(identity),
        }
    }

    /// Acts on pods: makes them crash, end or change their behaviour.
    ///
    /// # Errors
    ///
    /// No actors run with this real server.
    pub fn pods(&self) -> Result<Pods<'_>, NoActors> {
        match self {
            Self::Embedded(plane) => Ok(plane.pods()),
            Self::Real(real) => real.pods(),
        }
    }

    /// Acts on nodes: disconnects, reconnects and taints them.
    ///
    /// # Errors
    ///
    /// No actors run with this real server.
    pub fn nodes(&self) -> Result<Nodes<'_>, NoActors> {
        match self {
            Self::Embedded(plane) => Ok(plane.nodes()),
            Self::Real(real) => real.nodes(),
        }
    }

    /// Returns the URL of the API server; `None` for an embedded one without a port.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Embedded(plane) => plane.url(),
            Self::Real(real) => Some(real.url()),
        }
    }

    /// Returns the administrator's kubeconfig.
    ///
    /// # Errors
    ///
    /// The embedded control plane has no port.
    pub fn kubeconfig(&self) -> Result<Value, AccessError> {
        match self {
            Self::Embedded(plane) => plane.kubeconfig().ok_or(AccessError::NoPort),
            Self::Real(real) => Ok(real.kubeconfig()),
        }
    }

    /// Returns a kubeconfig with the permissions of another user.
    ///
    /// # Errors
    ///
    /// The embedded control plane has no port.
    pub fn kubeconfig_for(&self, identity: &Identity) -> Result<Value, AccessError> {
        match self {
            Self::Embedded(plane) => plane.kubeconfig_for(identity),
            Self::Real(real) => Ok(real.kubeconfig_for(identity)),
        }
    }

    /// Writes the administrator's kubeconfig to a file atomically.
    ///
    /// # Errors
    ///
    /// There is no port, or the file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), AccessError> {
        kubeconfig::write_atomically(path, &format!("{:#}\n", self.kubeconfig()?))?;
        Ok(())
    }

    /// Creates a namespace with a generated name. In an existing cluster it is deleted at the end.
    ///
    /// # Errors
    ///
    /// The server rejects the request.
    pub async fn create_namespace(&self, prefix: &str) -> Result<String, ClusterError> {
        match self {
            Self::Embedded(plane) => namespaces::create(&plane.client(), prefix).await,
            Self::Real(real) => real.create_namespace(prefix).await,
        }
    }

    /// Returns the embedded control plane, for its extra features: faults, audit log, clock, store.
    ///
    /// # Errors
    ///
    /// The control plane is a real one.
    pub fn embedded(&self) -> Result<&TestControlPlane, NotEmbedded> {
        match self {
            Self::Embedded(plane) => Ok(plane),
            Self::Real(real) => Err(real.not_embedded()),
        }
    }

    /// Stops the embedded control plane or the started processes. An existing cluster keeps
    /// running; only the namespaces created here are deleted.
    ///
    /// # Errors
    ///
    /// A process did not exit in time and was killed.
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

/// Builds a [`TestCluster`].
#[derive(Clone, Debug, Default)]
pub struct TestClusterBuilder {
    plane: TestControlPlaneBuilder,
    flags: Vec<String>,
    actors: Option<ActorsConfig>,
}

impl TestClusterBuilder {
    /// Configures the embedded control plane; ignored by other backends.
    #[must_use]
    pub fn embedded(
        mut self,
        configure: impl FnOnce(TestControlPlaneBuilder) -> TestControlPlaneBuilder,
    ) -> Self {
        self.plane = configure(self.plane);
        self
    }

    /// Runs these actors. With a started kube-apiserver they are its clients, as in a cluster. In
    /// an existing cluster they run only if it has no other nodes. There they see only namespaces
    /// created through the [`TestCluster`], so they don't disturb other users.
    ///
    /// To configure only the embedded control plane's actors, use [`embedded`](Self::embedded).
    #[must_use]
    pub fn actors(mut self, actors: ActorsConfig) -> Self {
        self.actors = Some(actors);
        self
    }

    /// Adds a flag for a started kube-apiserver, such as
    /// `--feature-gates=MaxUnavailableStatefulSet=true`; ignored by other backends.
    #[must_use]
    pub fn kube_apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Starts the backend that the environment selects. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The environment has an invalid setting, or the cluster can't be started or reached. There is
    /// no fallback.
    pub async fn start(self) -> Result<TestCluster, ClusterError> {
        Box::pin(self.start_on(Backend::from_env()?)).await
    }

    /// Starts this backend. Must be called inside a tokio runtime, whose time must not be paused
    /// for a real server.
    ///
    /// # Errors
    ///
    /// The cluster can't be started or reached.
    pub async fn start_on(self, backend: Backend) -> Result<TestCluster, ClusterError> {
        let Self {
            plane,
            flags,
            actors,
        } = self;
        match backend {
            Backend::Embedded => {
                let plane = match actors {
                    Some(actors) => plane.actors(actors),
                    None => plane,
                };
                let plane: TestControlPlane = Box::pin(plane.try_start()).await?;
                Ok(TestCluster::Embedded(Box::new(plane)))
            }
            Backend::Binaries(assets) => {
                let assets: Assets = assets.kube_apiserver_flags(flags);
                let (config, binaries) = Box::pin(binaries::start(&assets)).await?;
                let origin = Origin::Binaries(Box::new(binaries));
                let real = RealControlPlane::start(config, origin, actors.unwrap_or_default());
                let real = Box::pin(real).await?;
                Ok(TestCluster::Real(Box::new(real)))
            }
            Backend::Existing => {
                let real = Box::pin(existing::find(actors.unwrap_or_default())).await?;
                Ok(TestCluster::Real(Box::new(real)))
            }
        }
    }

    /// Uses the existing cluster of this configuration and ignores the environment.
    ///
    /// # Errors
    ///
    /// The cluster can't be reached.
    pub async fn connect(self, config: kube::Config) -> Result<TestCluster, ClusterError> {
        let real = Box::pin(existing::connect(config, self.actors.unwrap_or_default())).await?;
        Ok(TestCluster::Real(Box::new(real)))
    }
}
