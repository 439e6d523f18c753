//! The linked controller with informers, queue and workers, against the embedded control plane.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod builder;
#[cfg(feature = "prometheus")]
mod metrics;
mod panics;
mod sharing;
mod threads;
mod workers;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};
use statefulset_client::clock::FakeClock;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller::{Builder, StatefulSetController};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A control plane without nodes, and the controller once it runs.
struct World {
    plane: TestControlPlane,
    cancelled: CancellationToken,
    tasks: JoinSet<()>,
}

impl World {
    async fn new() -> Self {
        Self {
            plane: TestControlPlane::builder().start().await,
            cancelled: CancellationToken::new(),
            tasks: JoinSet::new(),
        }
    }

    fn builder(&self) -> Builder {
        let client = || RestClient::new(self.plane.client());
        StatefulSetController::builder_with_clients(client(), client())
            .recorder(Arc::new(NoopRecorder))
            .clock(Arc::new(FakeClock::default()))
            .concurrent_syncs(NonZeroUsize::MIN)
            .resync_period(None)
            .seed(1)
    }

    fn run(&mut self) {
        self.run_built_by(self.builder());
    }

    fn run_built_by(&mut self, builder: Builder) {
        self.run_this(builder.build().unwrap());
    }

    fn run_this(&mut self, controller: StatefulSetController) {
        let shutdown = self.cancelled.clone().cancelled_owned();
        self.tasks
            .spawn(async move { controller.run(shutdown).await.unwrap() });
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let server = self.plane.server();
        let (code, answer) = server.call_json(method, path, "test", body).await;
        assert!(code < 300, "{answer}");
        answer
    }

    async fn create_set(&self, name: &str, replicas: u32) {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        self.ask(Method::POST, SETS, &set).await;
    }

    async fn pods(&self) -> Vec<String> {
        let list = self.ask(Method::GET, PODS, &Value::Null).await;
        let items = list["items"].as_array().unwrap();
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().map(name).collect()
    }

    /// Shuts the controller down and waits for it.
    async fn end(&mut self) {
        self.cancelled.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }

    /// Waits until the controller is idle.
    async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn existing_and_new_sets_get_their_pods() {
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    world.run();
    world.rest().await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
    world.create_set("db", 1).await;
    world.rest().await;
    assert_eq!(world.pods().await, ["db-0", "web-0", "web-1"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_recreated() {
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    world.run();
    world.rest().await;
    let path = format!("{PODS}/web-1");
    world.ask(Method::DELETE, &path, &json!({})).await;
    world.rest().await;
    assert_eq!(world.pods().await, ["web-0", "web-1"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_stops_the_controller() {
    let mut world = World::new().await;
    world.run();
    world.rest().await;
    world.end().await;
    world.create_set("web", 2).await;
    world.rest().await;
    assert_eq!(world.pods().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn shutdown_stops_before_the_caches_are_filled() {
    let mut world = World::new().await;
    world.create_set("web", 2).await;
    world.cancelled.cancel();
    world.run();
    world.end().await;
    assert_eq!(world.pods().await, Vec::<String>::new());
}
