//! Use of an existing cluster.

use kube::{Client, Config};
use kube_test_control_plane_actors::ActorsConfig;

use super::error::{ClusterError, ConnectError};
use super::real::{Origin, RealControlPlane};
use super::request::{RESPONSE_MAX, request_within};

/// Finds the cluster as kube-rs does and checks that it responds.
pub(super) async fn find(actors: ActorsConfig) -> Result<RealControlPlane, ClusterError> {
    let config = Config::infer().await.map_err(|err| {
        unreachable(
            "of USE_EXISTING_CLUSTER=true",
            ConnectError::Infer(Box::new(err)),
        )
    })?;
    Box::pin(connect(config, actors)).await
}

/// Checks that a cluster responds and accepts our credentials.
pub(super) async fn connect(
    config: Config,
    actors: ActorsConfig,
) -> Result<RealControlPlane, ClusterError> {
    let url = config.cluster_url.to_string();
    // A retry would only delay the error.
    let mut once = config.clone();
    once.default_retry = false;
    let client = Client::try_from(once)
        .map_err(|err| unreachable(&url, ConnectError::Client(Box::new(err))))?;
    // Unlike /version, this path needs credentials.
    request_within(RESPONSE_MAX, &client, "/api/v1/namespaces?limit=1")
        .await
        .map_err(|err| unreachable(&url, err.into()))?;
    RealControlPlane::start(config, Origin::Existing, actors).await
}

fn unreachable(url: &str, source: ConnectError) -> ClusterError {
    ClusterError::Unreachable {
        url: url.to_owned(),
        source,
    }
}
