//! Configures and starts a cluster.

use kube_test_control_plane_actors::ActorsConfig;

use super::TestCluster;
use super::backend::Backend;
use super::binaries::{self, Assets};
use super::error::ClusterError;
use super::existing;
use crate::control_plane::{TestControlPlane, TestControlPlaneBuilder};

/// Builds a [`TestCluster`].
#[derive(Clone, Debug, Default)]
pub struct TestClusterBuilder {
    plane: TestControlPlaneBuilder,
    flags: Vec<String>,
    actors: Option<ActorsConfig>,
}

impl TestClusterBuilder {
    /// Configures the embedded control plane; without effect on another one.
    #[must_use]
    pub fn embedded(
        mut self,
        configure: impl FnOnce(TestControlPlaneBuilder) -> TestControlPlaneBuilder,
    ) -> Self {
        self.plane = configure(self.plane);
        self
    }

    /// Runs these actors. Beside a real kube-apiserver that was started here they are its clients,
    /// as in a cluster. In an existing cluster they run only if it has no nodes but theirs, and see
    /// only the namespaces that are made through the [`TestCluster`], so that they leave alone what
    /// others do there.
    ///
    /// Actors of the embedded control plane alone are configured in
    /// [`embedded`](Self::embedded).
    #[must_use]
    pub fn actors(mut self, actors: ActorsConfig) -> Self {
        self.actors = Some(actors);
        self
    }

    /// Adds a flag to those that a real kube-apiserver is started with, such as
    /// `--feature-gates=MaxUnavailableStatefulSet=true`; without effect on another one.
    #[must_use]
    pub fn kube_apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Starts what the environment chooses. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The environment says something that can't be used, or the cluster can't be started or
    /// reached. There is no second choice.
    pub async fn start(self) -> Result<TestCluster, ClusterError> {
        Box::pin(self.start_on(Backend::from_env()?)).await
    }

    /// Starts this backend. Must be called inside a tokio runtime; a real server needs one whose
    /// time is not paused.
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
                let plane: TestControlPlane = plane.try_start().await?;
                Ok(TestCluster::Embedded(Box::new(plane)))
            }
            Backend::Binaries(assets) => {
                let assets: Assets = assets.kube_apiserver_flags(flags);
                let real = Box::pin(binaries::start(&assets, actors.unwrap_or_default())).await?;
                Ok(TestCluster::Real(Box::new(real)))
            }
            Backend::Existing => {
                let real = Box::pin(existing::find(actors.unwrap_or_default())).await?;
                Ok(TestCluster::Real(Box::new(real)))
            }
        }
    }

    /// Uses the existing cluster that this configuration leads to, whatever the environment says.
    ///
    /// # Errors
    ///
    /// The cluster can't be reached.
    pub async fn connect(self, config: kube::Config) -> Result<TestCluster, ClusterError> {
        let real = Box::pin(existing::connect(config, self.actors.unwrap_or_default())).await?;
        Ok(TestCluster::Real(Box::new(real)))
    }
}
