//! Takeover of sets in the middle of a rollout: the controller finishes what upstream began,
//! and repeats nothing.

use std::time::Duration;

use conformance::settled::shapes::Shape;
use integration::World;
use integration::poll::Patience;
use integration::recorded::Recorded;
use integration::space::{Patch, Space};
use integration::stateful_sets::{count, name, set_pod_ready, uid};
use kube_test_control_plane::faults::RequestMatcher;
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::resource::{CONTROLLER_REVISIONS, PODS, STATEFUL_SETS};
use statefulset_client::rest::RestClient;

const PATIENCE: Patience = Patience(Duration::from_secs(600));

/// The recorded cluster with this id.
fn recorded(shape: Shape, id: &str) -> Recorded {
    let mut all = Recorded::all(shape).into_iter();
    all.find(|recorded| recorded.id == id)
        .unwrap_or_else(|| panic!("no cluster is called {id}"))
}

/// The cluster after its first pod was updated: the remaining pods are the old ones.
fn half_rolled(shape: Shape, app: &str) -> Recorded {
    let before = recorded(shape, &format!("{app}/created"));
    let mut cluster = recorded(shape, &format!("{app}/rolled"));
    let revisions = cluster.list("controllerrevisions").iter();
    let old = revisions.min_by_key(|revision| revision["revision"].as_i64());
    let old = old.expect("the cluster has revisions").clone();
    let pods = cluster.list_mut("pods");
    let last = pods.len() - 1;
    pods[..last].clone_from_slice(&before.list("pods")[..last]);
    for pod in &mut pods[..last] {
        pod["metadata"]["labels"]["controller-revision-hash"] = old["metadata"]["name"].clone();
        pod["metadata"]["ownerReferences"][0]["uid"] =
            old["metadata"]["ownerReferences"][0]["uid"].clone();
    }
    let status = &mut cluster.list_mut("statefulsets")[0]["status"];
    status["currentRevision"] = old["metadata"]["name"].clone();
    status["currentReplicas"] = last.into();
    status["updatedReplicas"] = 1.into();
    cluster
}

/// Takes a cluster over and acts as the kubelet until the set is complete. Returns the controller's
/// pod writes, in order.
async fn complete(world: &mut World, space: &Space, cluster: &Recorded) -> Vec<String> {
    let before = world.plane().server().audit().mark();
    world.start_controller(RestClient::new(world.controller_client()));
    let set = name(cluster.set()).to_owned();
    let revisions = space.list(&CONTROLLER_REVISIONS, "").await;
    let completed = async || {
        for pod in space.list(&PODS, "").await {
            if pod["status"]["phase"] != "Running" {
                set_pod_ready(space, name(&pod), true, world.now()).await;
            }
        }
        let set = space.get(&STATEFUL_SETS, &set).await;
        let (replicas, status) = (set["spec"]["replicas"].as_i64(), &set["status"]);
        let is_current = status["currentRevision"] == status["updateRevision"];
        let is_updated = Some(count(&set, "updatedReplicas")) == replicas;
        let is_ready = Some(count(&set, "readyReplicas")) == replicas;
        (is_current && is_updated && is_ready).then_some(status["updateRevision"].clone())
    };
    let update = PATIENCE.until("the rollout is complete", completed).await;
    assert_eq!(update, cluster.set()["status"]["updateRevision"]);
    assert_eq!(space.list(&CONTROLLER_REVISIONS, "").await, revisions);
    let pods = RequestMatcher::any().resource("pods");
    let audit = world.plane().server().audit();
    let writes = audit.writes_since(before, &pods);
    let writes = writes.unwrap_or_else(|forgotten| panic!("{forgotten}"));
    let done = writes
        .iter()
        .filter(|entry| matches!(entry.verb, Verb::Create | Verb::Delete));
    done.map(|entry| format!("{} {}", entry.verb.name(), entry.name))
        .collect()
}

/// The deletion and creation of each of these pods in turn.
fn replacing(pods: &[Value]) -> Vec<String> {
    let replace = |pod: &Value| ["delete", "create"].map(|verb| format!("{verb} {}", name(pod)));
    pods.iter().rev().flat_map(replace).collect()
}

/// Sets that roll out completely without user action.
const ROLLING: [&str; 4] = ["postgresql", "zookeeper", "kafka", "cassandra"];

#[tokio::test(start_paused = true)]
async fn rollout_continues_where_the_reference_stopped() {
    integration::embedded_only!("counts requests");
    for shape in [Shape::AsRecorded, Shape::V1_33, Shape::V1_33ThenNewer] {
        for app in ROLLING {
            let cluster = half_rolled(shape, app);
            let mut world = World::api_server().await;
            let space = world.namespace(app).await;
            cluster.load(&space).await;
            let pods = space.list(&PODS, "").await;
            let done = complete(&mut world, &space, &cluster).await;
            let (rolled, waiting) = pods.split_last().unwrap();
            assert_eq!(done, replacing(waiting), "{shape:?} {app}");
            let now = space.get(&PODS, name(rolled)).await;
            assert_eq!(uid(&now), uid(rolled));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_by_the_reference_is_recreated() {
    integration::embedded_only!("counts requests");
    for app in ROLLING {
        let mut cluster = half_rolled(Shape::AsRecorded, app);
        let pods = cluster.cluster["pods"]["items"].as_array_mut().unwrap();
        let deleted = pods.remove(pods.len() - 2);
        // A rollout's deletion and the new counts are part of the same sync.
        let status = &mut cluster.list_mut("statefulsets")[0]["status"];
        let current = status["currentReplicas"].as_i64().unwrap();
        status["currentReplicas"] = (current - 1).into();
        let mut world = World::api_server().await;
        let space = world.namespace(app).await;
        cluster.load(&space).await;
        let pods = space.list(&PODS, "").await;
        let done = complete(&mut world, &space, &cluster).await;
        let (rolled, waiting) = pods.split_last().unwrap();
        let mut expected = vec![format!("create {}", name(&deleted))];
        expected.extend(replacing(waiting));
        assert_eq!(done, expected, "{app}");
        let now = space.get(&PODS, name(rolled)).await;
        assert_eq!(uid(&now), uid(rolled));
    }
}

#[tokio::test(start_paused = true)]
async fn rollout_continues_when_the_partition_is_removed() {
    integration::embedded_only!("counts requests");
    for shape in Shape::ALL {
        for app in ["postgresql", "zookeeper", "kafka", "cassandra", "redis"] {
            let cluster = recorded(shape, &format!("{app}/scaled-and-partitioned"));
            let mut world = World::api_server().await;
            let space = world.namespace(app).await;
            cluster.load(&space).await;
            let pods = space.list(&PODS, "").await;
            let lift = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
            let set = name(cluster.set());
            space
                .patch(&STATEFUL_SETS, set, "", Patch::Merge, &lift)
                .await;
            let done = complete(&mut world, &space, &cluster).await;
            assert_eq!(done, replacing(&pods[..1]), "{shape:?} {app}");
            let now = space.get(&PODS, name(&pods[1])).await;
            assert_eq!(uid(&now), uid(&pods[1]));
        }
    }
}
