//! Configures and starts a cluster.

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
    arguments: Vec<String>,
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

    /// Adds a flag to those that a real kube-apiserver is started with, such as
    /// `--feature-gates=MaxUnavailableStatefulSet=true`; without effect on another one.
    #[must_use]
    pub fn kube_apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.arguments.push(flag.into());
        self
    }

    /// Starts what the environment chooses. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The environment says something that can't be used, or the cluster can't be started or
    /// reached. There is no second choice.
    pub async fn start(self) -> Result<TestCluster, ClusterError> {
        self.start_on(Backend::from_env()?).await
    }

    /// Starts this backend. Must be called inside a tokio runtime; a real server needs one whose
    /// time is not paused.
    ///
    /// # Errors
    ///
    /// The cluster can't be started or reached.
    pub async fn start_on(self, backend: Backend) -> Result<TestCluster, ClusterError> {
        match backend {
            Backend::Embedded => {
                let plane: TestControlPlane = self.plane.try_start().await?;
                Ok(TestCluster::Embedded(Box::new(plane)))
            }
            Backend::Binaries(assets) => {
                let assets: Assets = assets.kube_apiserver_flags(self.arguments);
                let real = binaries::start(&assets).await?;
                Ok(TestCluster::Real(Box::new(real)))
            }
            Backend::Existing => {
                let real = existing::find().await?;
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
        let real = existing::connect(config).await?;
        Ok(TestCluster::Real(Box::new(real)))
    }
}
