//! The actors of a real API server, which are clients of it.

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

use super::error::{ClusterError, in_one_line};
use super::real::ask;

/// The least time from a write to what the garbage collector and the namespace controller make of
/// it: they compare kinds, and the watches of two kinds don't tell of writes in one order.
const LAG: Duration = Duration::from_millis(200);
/// How long stopping waits for the tasks to end by themselves.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// No actors run in this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no actors run in this cluster: none was configured, or it has nodes of its own, which run its \
     pods"
)]
pub struct NoActors;

/// The actors that run.
#[derive(Debug)]
pub(super) struct Simulated {
    server: ActorServer,
    handles: Handles,
    tasks: JoinSet<()>,
}

impl Simulated {
    /// Starts actors that see these objects; none if none is wanted, or if others do their work.
    pub(super) async fn start(
        client: &Client,
        scope: Scope,
        mut config: ActorsConfig,
    ) -> Result<Option<Self>, ClusterError> {
        if config.is_empty() {
            return Ok(None);
        }
        let failed = |err: kube::Error| ClusterError::Actors {
            reason: in_one_line(&err),
        };
        let is_shared = matches!(scope, Scope::Namespaces(_));
        if is_shared && has_real_nodes(client).await.map_err(failed)? {
            tracing::info!("the cluster has nodes of its own: no actors are started");
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

    /// Ends them, and waits for it. Panics on if an actor has panicked.
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
            tracing::warn!("some actors did not end in time and are aborted");
        }
        self.tasks.shutdown().await;
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.server.stopping().cancel();
    }
}

/// The time of day, as a real server has it.
fn wall_clock() -> TokioClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a real server goes by the time of day, and its actors must too"
    )]
    let now = jiff::Timestamp::try_from(SystemTime::now());
    TokioClock::starting_at(now.unwrap_or_default())
}

/// Whether there is a node that isn't one of ours.
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
