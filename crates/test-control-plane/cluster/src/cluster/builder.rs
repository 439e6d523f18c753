//! Configures and starts a cluster.

use kube_test_control_plane_actors::ActorsConfig;

use super::backend::Backend;
use super::binaries::{self, Assets};
use super::error::ClusterError;
use super::real::{Origin, RealControlPlane};
use super::{TestCluster, existing};
use crate::control_plane::{TestControlPlane, TestControlPlaneBuilder};

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
