//! Lost, tainted, cordoned and deleted nodes with their pods.

use std::time::Duration;

use crate::support::{Plane, eventually, is_ready};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{Cause, KubeletConfig, NodesConfig, PodCollectorConfig};
use serde_json::{Value, json};
use tokio::time::Instant;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

/// Starts a control plane with one node and a ready pod on it.
async fn cluster() -> Plane {
    let builder = TestControlPlane::builder().configure_actors(|actors| {
        actors.nodes = NodesConfig::numbered(1);
        actors.kubelet = Some(KubeletConfig::default());
        actors.scheduler.get_or_insert_default();
        actors.node_controller.get_or_insert_default();
        actors.pod_collector.get_or_insert_default();
    });
    let plane = Plane::new(builder.start().await);
    plane.create(PODS, &crate::support::pod("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane
}

async fn node(plane: &Plane) -> Value {
    plane.get("/api/v1/nodes/node-0").await
}

fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == name).unwrap()
}

fn taints(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array();
    let shown = |taint: &Value| {
        let text = |member: &str| taint[member].as_str().unwrap().to_owned();
        format!("{}:{}", text("key"), text("effect"))
    };
    taints.into_iter().flatten().map(shown).collect()
}

/// Returns a control plane with an unreachable node, and the time of its loss.
async fn lost() -> (Plane, Instant) {
    let plane = cluster().await;
    plane.0.nodes().lose("node-0").await;
    let since = Instant::now();
    eventually(|| async { !is_ready(&plane.get(POD).await) }).await;
    (plane, since)
}

#[tokio::test(start_paused = true)]
async fn silent_node_becomes_unreachable_and_its_pods_unready() {
    let (plane, since) = lost().await;
    assert_eq!(since.elapsed().as_secs(), 50);
    let found = node(&plane).await;
    for name in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        let condition = condition(&found, name);
        assert_eq!(
            (
                &condition["status"],
                &condition["reason"],
                &condition["message"]
            ),
            (
                &json!("Unknown"),
                &json!("NodeStatusUnknown"),
                &json!("Kubelet stopped posting node status.")
            )
        );
    }
    assert_eq!(
        taints(&node(&plane).await),
        [
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute"
        ]
    );
    let pod = plane.get(POD).await;
    assert_eq!(condition(&pod, "ContainersReady")["status"], "True");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(plane.0.pods().running().await.len(), 1);

    // A node that returns in time keeps its pods.
    tokio::time::sleep(Duration::from_secs(100)).await;
    plane.0.nodes().heal("node-0").await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    eventually(|| async { taints(&node(&plane).await).is_empty() }).await;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(!plane.is_deleting(POD).await);
    plane.stop().await;
}

/// Returns a control plane with a lost node from which the pod was evicted.
async fn evicted() -> Plane {
    let (plane, since) = lost().await;
    eventually(|| async { plane.is_deleting(POD).await }).await;
    assert_eq!(since.elapsed().as_secs(), 350);
    let pod = plane.get(POD).await;
    let target = condition(&pod, "DisruptionTarget");
    assert_eq!(
        (&target["reason"], &target["message"]),
        (
            &json!("DeletionByTaintManager"),
            &json!("Taint manager: deleting due to NoExecute taint")
        )
    );
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(plane.is_deleting(POD).await);
    plane
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_lost_node_stay_until_it_returns() {
    let plane = evicted().await;
    plane.0.nodes().heal("node-0").await;
    eventually(|| async { plane.code(POD).await == 404 }).await;
    assert!(plane.0.pods().running().await.is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_lost_node_stay_until_it_is_deleted() {
    let plane = evicted().await;
    plane.0.nodes().delete("node-0").await.unwrap();
    let start = Instant::now();
    let store = plane.0.server().store();
    let revision = store.revision();
    eventually(|| async { plane.code(POD).await == 404 }).await;
    assert_eq!(start.elapsed().as_secs(), 40);
    let (_, events) = store.events_after(revision, 10).unwrap();
    let last = events.last().unwrap().object.value();
    assert_eq!(last["status"]["phase"], "Failed");
    assert_eq!(
        condition(&last, "DisruptionTarget")["reason"],
        "DeletionByPodGC"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_lost_node_stay_until_it_is_out_of_service() {
    let plane = evicted().await;
    plane.0.nodes().set_out_of_service("node-0").await.unwrap();
    eventually(|| async { plane.code(POD).await == 404 }).await;
    // The machine may still run it, so a user must declare the node out of service.
    assert_eq!(plane.0.pods().running().await.len(), 1);
    plane.0.nodes().heal("node-0").await;
    assert!(plane.0.pods().running().await.is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_forced_deletion_lets_two_pods_share_a_name() {
    let (plane, _) = lost().await;
    let pods = plane.0.pods();
    pods.delete("default", "p", Some(0)).await.unwrap();
    plane.0.nodes().add("other", 100).await.unwrap();
    plane.create(PODS, &crate::support::pod("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let running = pods.running().await;
    let mut nodes: Vec<&str> = running.iter().map(|pod| pod.node.as_str()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-0", "other"]);
    plane.0.nodes().heal("node-0").await;
    assert_eq!(pods.running().await.len(), 1);
    assert!(is_ready(&plane.get(POD).await));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn taint_evicts_pods_without_a_toleration() {
    let plane = cluster().await;
    let mut tolerant = crate::support::pod("tolerant");
    tolerant["spec"]["tolerations"] = json!([{"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]);
    plane.create(PODS, &tolerant).await;
    let tolerant = format!("{PODS}/tolerant");
    eventually(|| async { is_ready(&plane.get(&tolerant).await) }).await;
    let start = Instant::now();
    plane
        .0
        .nodes()
        .taint("node-0", "gone", "", "NoExecute")
        .await
        .unwrap();
    eventually(|| async { plane.code(POD).await == 404 }).await;
    assert_eq!(start.elapsed().as_secs(), 0);
    eventually(|| async { plane.code(&tolerant).await == 404 }).await;
    assert_eq!(start.elapsed().as_secs(), 20);
    plane.0.nodes().untaint("node-0", "gone").await.unwrap();
    assert!(taints(&node(&plane).await).is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn terminating_pods_without_a_node_are_collected() {
    let builder = TestControlPlane::builder();
    let builder = builder.configure_actors(|actors| {
        actors.pod_collector.get_or_insert_default();
    });
    let plane = Plane::new(builder.start().await);
    let mut pod = crate::support::pod("p");
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    plane.create(PODS, &pod).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    eventually(|| async { plane.get(POD).await["status"]["phase"] == "Failed" }).await;
    let revision = plane.0.server().store().revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(plane.0.server().store().revision(), revision);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn surplus_finished_pods_are_collected_oldest_first() {
    let builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    let builder = builder.configure_actors(|actors| {
        actors.pod_collector = Some(PodCollectorConfig::default().terminated_pods(2));
    });
    let plane = Plane::new(builder.start().await);
    let pods = plane.0.pods();
    for (name, cause) in [
        ("a", Cause::Exited),
        ("b", Cause::Exited),
        ("c", Cause::Evicted),
        ("d", Cause::Exited),
    ] {
        plane.create(PODS, &crate::support::pod(name)).await;
        let path = format!("{PODS}/{name}");
        eventually(|| async { is_ready(&plane.get(&path).await) }).await;
        pods.fail("default", name, cause).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (_, left) = plane.0.server().store().list("pods", "default");
    let names: Vec<&str> = left.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(names, ["b", "d"]);
    plane.stop().await;
}
#[tokio::test(start_paused = true)]
async fn cordoned_node_is_tainted_and_gets_no_pods() {
    let plane = cluster().await;
    plane.0.nodes().cordon("node-0").await.unwrap();
    eventually(|| async {
        taints(&node(&plane).await) == ["node.kubernetes.io/unschedulable:NoSchedule"]
    })
    .await;
    plane.create(PODS, &crate::support::pod("late")).await;
    let late = format!("{PODS}/late");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(plane.get(&late).await["spec"]["nodeName"].is_null());
    plane.0.nodes().uncordon("node-0").await.unwrap();
    eventually(|| async { is_ready(&plane.get(&late).await) }).await;
    assert!(taints(&node(&plane).await).is_empty());
    assert!(is_ready(&plane.get(POD).await));
    let err = plane.0.nodes().cordon("nope").await.unwrap_err();
    assert_eq!(
        err.to_string(),
        "cordoning node nope: 404 nodes \"nope\" not found"
    );
    plane.stop().await;
}
