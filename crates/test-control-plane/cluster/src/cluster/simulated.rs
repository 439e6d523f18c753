//! Actors for a real API server, as its clients.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kube::Client;
use kube_test_control_plane_actors::{
    self as actors, ActorServer, ActorsConfig, Handles, Mirror, Nodes, OS_IMAGE, Pods, Scope,
};
use kube_test_control_plane_store::clock::TokioClock;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::error::ClusterError;
use super::request::ask;

/// Minimum delay between a write and the reaction of the garbage collector and the namespace
/// controller. They compare kinds, and watches of different kinds are not ordered with each other.
const LAG: Duration = Duration::from_millis(200);
/// The time that the tasks get to end when stopping.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// No actors run in this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no actors run in this cluster: none is configured, or the cluster's own nodes run its pods"
)]
pub struct NoActors;

/// The running actors.
#[derive(Debug)]
pub(super) struct Simulated {
    server: ActorServer,
    handles: Handles,
    tasks: JoinSet<()>,
}

impl Simulated {
    /// Starts actors that see only the given objects. Returns `None` if none are configured or if
    /// the cluster has its own nodes.
    pub(super) async fn start(
        client: &Client,
        scope: Scope,
        mut config: ActorsConfig,
    ) -> Result<Option<Self>, ClusterError> {
        if config.is_empty() {
            return Ok(None);
        }
        let failed = |source| ClusterError::Actors { source };
        let is_shared = matches!(scope, Scope::Namespaces(_));
        if is_shared && has_real_nodes(client).await.map_err(failed)? {
            tracing::info!("not starting actors: the cluster has its own nodes");
            return Ok(None);
        }
        if let Some(config) = &mut config.garbage_collector {
            config.delay = config.delay.max(LAG);
        }
        if let Some(config) = &mut config.namespace_controller {
            config.delay = config.delay.max(LAG);
        }
        let mut tasks = JoinSet::new();
        let clock = Arc::new(wall_clock());
        let mirror = Mirror::start(client.clone(), clock, scope, &mut tasks).await;
        let server = ActorServer::Real(mirror.map_err(failed)?);
        let handles = actors::start(&server, config, &mut tasks).await;
        Ok(Some(Self {
            server,
            handles,
            tasks,
        }))
    }

    pub(super) fn pods(&self) -> Pods<'_> {
        Pods::new(&self.server, &self.handles)
    }

    pub(super) fn nodes(&self) -> Nodes<'_> {
        Nodes::new(&self.server, &self.handles)
    }

    /// Stops the actors and waits for them. Panics if an actor has panicked.
    pub(super) async fn stop(mut self) {
        self.server.stopping().cancel();
        let ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Err(err) = ended
                    && let Ok(panic) = err.try_into_panic()
                {
                    resume_unwind(panic);
                }
            }
        };
        if timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("aborting actors that did not stop in time");
        }
        self.tasks.shutdown().await;
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.server.stopping().cancel();
    }
}

/// Returns a clock that starts at the current time, like the real server's.
fn wall_clock() -> TokioClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a real server uses the wall clock, so its actors must too"
    )]
    let now = jiff::Timestamp::try_from(SystemTime::now());
    TokioClock::starting_at(now.unwrap_or_default())
}

/// Returns true if the cluster has a node that isn't simulated.
async fn has_real_nodes(client: &Client) -> kube::Result<bool> {
    let text = ask(client, "/api/v1/nodes").await?;
    let nodes: Value = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
    let is_real = |node: &Value| {
        let image = node.pointer("/status/nodeInfo/osImage");
        image.and_then(Value::as_str) != Some(OS_IMAGE)
    };
    let nodes = nodes["items"].as_array();
    Ok(nodes.is_some_and(|nodes| nodes.iter().any(is_real)))
}
