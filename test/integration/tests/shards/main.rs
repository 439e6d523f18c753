//! Tests of concurrent controllers, each with a shard of the namespaces.

mod handover;

use std::sync::Arc;
use std::time::Duration;

use integration::manifests;
use kube_test_control_plane::ServerGates;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, PodBehaviour};
use serde_json::{Value, json};
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::resource::{PODS, Resource, STATEFUL_SETS};
use statefulset_client::rest::{ListOptions, PatchType, RestClient};
use statefulset_client::shard::Shard;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

const NAMESPACES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "namespaces",
    kind: "Namespace",
};
/// The namespaces, each with one set.
const NAMES: [&str; 8] = [
    "billing",
    "checkout",
    "default-2",
    "identity",
    "orders",
    "search",
    "shipping",
    "stock",
];
/// The error of a failed creation.
const CREATED: &str = "the object is created";
/// Time that a pod takes each to start, to become ready and to stop.
const STAGE: Duration = Duration::from_secs(1);
/// Longer than the start of all pods takes.
const SETTLED: Duration = Duration::from_secs(60);

struct World {
    plane: TestControlPlane,
    client: RestClient,
}

impl World {
    /// Starts an API server with or without the gate, and creates sets with this number of pods.
    async fn start(sharded_list_and_watch: bool, replicas: u32) -> Self {
        let gates = ServerGates::default().sharded_list_and_watch(sharded_list_and_watch);
        let plane = TestControlPlane::builder()
            .feature_gates(gates)
            .configure_actors(|actors| {
                actors.kubelet = Some(KubeletConfig::new(PodBehaviour::with_delays(STAGE)));
            })
            .all_actors()
            .start()
            .await;
        let client = RestClient::new(plane.client());
        for namespace in namespaces() {
            let object = json!({"metadata": {"name": namespace}}).to_string();
            client.create(&NAMESPACES, "", object).await.expect(CREATED);
            let set = manifests::web(replicas).to_string();
            client
                .create(&STATEFUL_SETS, &namespace, set)
                .await
                .expect(CREATED);
        }
        Self { plane, client }
    }

    /// Starts the controller of a shard; it runs until the tasks are dropped.
    fn control(&self, shard: Shard) -> JoinSet<()> {
        let client = RestClient::new(self.plane.client());
        let controller = StatefulSetController::builder_with_clients(client.clone(), client)
            .recorder(Arc::new(NoopRecorder))
            .resync_period(None)
            .shard(Some(shard))
            .build()
            .expect("no election is configured");
        run(controller)
    }

    /// Applies a merge patch to every set.
    async fn patch(&self, change: &Value) {
        for namespace in namespaces() {
            let change = change.to_string();
            let patched =
                self.client
                    .patch(&STATEFUL_SETS, &namespace, "web", PatchType::Merge, change);
            patched.await.expect("the set is patched");
        }
    }

    /// Returns the namespace of each pod after all controllers are done, sorted.
    async fn pods(&self) -> Vec<String> {
        tokio::time::sleep(SETTLED).await;
        self.namespaces_of(&PODS, &ListOptions::default()).await
    }

    /// Returns the namespace of each listed object.
    async fn namespaces_of(&self, resource: &Resource, options: &ListOptions) -> Vec<String> {
        let list = self.client.list(resource, options).await;
        let mut list = list.expect("the list is allowed");
        let mut found = Vec::new();
        while let Some(item) = list.next().await.expect("the list is complete") {
            let object: Value =
                serde_json::from_str(item.text()).expect("the server answers in JSON");
            let namespace = object["metadata"]["namespace"].as_str();
            found.push(namespace.unwrap_or_default().to_owned());
        }
        found
    }
}

/// Runs a controller until the tasks are dropped.
fn run(controller: StatefulSetController) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        controller
            .run(std::future::pending())
            .await
            .expect("it runs until it is dropped");
    });
    tasks
}

fn namespaces() -> impl Iterator<Item = String> {
    NAMES.into_iter().map(str::to_owned)
}

fn of(shard: Shard) -> Vec<String> {
    namespaces().filter(|name| shard.contains(name)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_set_is_served_by_its_shard() {
    let [first, second]: [Shard; 2] = ["0/2", "1/2"].map(|text| text.parse().expect("a shard"));
    assert!(!of(first).is_empty() && !of(second).is_empty());
    for sharded_server in [true, false] {
        let world = World::start(sharded_server, 1).await;
        let running = world.control(first);
        assert_eq!(world.pods().await, of(first), "{sharded_server}");

        let other = world.control(second);
        assert_eq!(world.pods().await, namespaces().collect::<Vec<_>>());

        // Without the instance of a shard, only its own sets wait, until another one serves them.
        drop(running);
        world.patch(&json!({"spec": {"replicas": 2}})).await;
        let mut expected: Vec<String> = namespaces().chain(of(second)).collect();
        expected.sort();
        assert_eq!(world.pods().await, expected);
        let _successor = world.control(first);
        assert_eq!(world.pods().await.len(), 2 * NAMES.len());
        drop(other);
    }
}

#[tokio::test(start_paused = true)]
async fn sharded_server_sends_only_the_shard() {
    let world = World::start(true, 1).await;
    let shard: Shard = "1/2".parse().expect("a shard");
    let options = ListOptions::default().shard_selector(shard.selector());
    let found = world.namespaces_of(&STATEFUL_SETS, &options).await;
    assert_eq!(found, of(shard));
}
