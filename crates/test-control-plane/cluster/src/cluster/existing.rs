//! Use of an existing cluster.

use kube::{Client, Config};
use kube_test_control_plane_actors::ActorsConfig;
use tokio::time::timeout;

use super::error::{ClusterError, in_one_line};
use super::real::{Origin, RealControlPlane};
use super::request::{ANSWER_MAX, ask};

/// Finds the cluster as kube-rs does and checks that it responds.
pub(super) async fn find(actors: ActorsConfig) -> Result<RealControlPlane, ClusterError> {
    let config = Config::infer()
        .await
        .map_err(|err| unreachable("of USE_EXISTING_CLUSTER=true", in_one_line(&err)))?;
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
    let client = Client::try_from(once).map_err(|err| unreachable(&url, in_one_line(&err)))?;
    // Unlike /version, this path needs credentials.
    match timeout(ANSWER_MAX, ask(&client, "/api/v1/namespaces?limit=1")).await {
        Ok(Ok(_)) => RealControlPlane::start(config, Origin::Existing, actors).await,
        Ok(Err(err)) => Err(unreachable(&url, in_one_line(&err))),
        Err(_) => Err(unreachable(
            &url,
            format!("no response within {ANSWER_MAX:?}"),
        )),
    }
}

fn unreachable(url: &str, reason: String) -> ClusterError {
    ClusterError::Unreachable {
        url: url.to_owned(),
        reason,
    }
}
