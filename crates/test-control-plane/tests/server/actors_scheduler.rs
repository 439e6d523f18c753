//! Scheduling of pods, and messages of unschedulable pods.

use std::time::Duration;

use crate::support::{Plane, eventually, is_ready};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    ActorsConfig, KubeletConfig, NodesConfig, PodMatcher, SchedulerConfig,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

async fn plane(nodes: usize, change: impl FnOnce(&mut ActorsConfig)) -> Plane {
    let builder = TestControlPlane::builder().configure_actors(|actors| {
        actors.nodes = NodesConfig::numbered(nodes);
        actors.kubelet = Some(KubeletConfig::default());
        actors.scheduler.get_or_insert_default();
        change(actors);
    });
    Plane::new(builder.start().await)
}

fn scheduled(pod: &Value) -> Value {
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|c| c["type"] == "PodScheduled");
    found.unwrap().clone()
}

async fn node_of(plane: &Plane, name: &str) -> String {
    let pod = plane.get(&format!("{PODS}/{name}")).await;
    pod["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Waits until a pod is unschedulable and returns the message.
async fn message(plane: &Plane, path: &str) -> String {
    eventually(|| async { plane.get(path).await["status"]["conditions"].is_array() }).await;
    let condition = scheduled(&plane.get(path).await);
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("Unschedulable"))
    );
    condition["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn pods_spread_over_the_nodes() {
    let plane = plane(3, |_| {}).await;
    for i in 0..6 {
        plane
            .create(PODS, &crate::support::pod(&format!("p-{i}")))
            .await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut nodes = Vec::new();
    for i in 0..6 {
        nodes.push(node_of(&plane, &format!("p-{i}")).await);
    }
    assert_eq!(
        nodes,
        ["node-0", "node-1", "node-2", "node-0", "node-1", "node-2"]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn full_node_gets_no_pods_until_one_is_deleted() {
    let plane = plane(1, |actors| {
        actors.nodes = NodesConfig::numbered(1).allocatable("pods", "1");
    })
    .await;
    plane.create(PODS, &crate::support::pod("first")).await;
    eventually(|| async { !node_of(&plane, "first").await.is_empty() }).await;
    plane.create(PODS, &crate::support::pod("p")).await;
    assert_eq!(
        message(&plane, POD).await,
        "0/1 nodes are available: 1 Too many pods. no new claims to deallocate, preemption: 0/1 \
         nodes are available: 1 No preemption victims found for incoming pod."
    );
    let first = format!("{PODS}/first");
    plane.call(Method::DELETE, &first, &json!({})).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let condition = scheduled(&plane.get(POD).await);
    assert_eq!(condition["status"], "True");
    assert!(condition.get("reason").is_none() && condition.get("message").is_none());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn message_counts_every_reason() {
    let plane = plane(4, |_| {}).await;
    let nodes = plane.0.nodes();
    nodes.cordon("node-0").await.unwrap();
    nodes
        .taint("node-1", "dedicated", "db", "NoSchedule")
        .await
        .unwrap();
    let label = json!({"metadata": {"labels": {"disk": "ssd"}}});
    plane
        .call(Method::PATCH, "/api/v1/nodes/node-3", &label)
        .await;
    let mut pod = crate::support::pod("p");
    pod["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100"}});
    plane.create(PODS, &pod).await;
    assert_eq!(
        message(&plane, POD).await,
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node \
         affinity/selector, 1 node(s) had untolerated taint {dedicated: db}, 1 node(s) were \
         unschedulable. no new claims to deallocate, preemption: 0/4 nodes are available: 1 No \
         preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
    );
    // Without changes, nothing is written.
    let revision = plane.0.server().store().revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(plane.0.server().store().revision(), revision);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tolerated_taints_are_allowed_and_soft_ones_avoided() {
    let plane = plane(2, |_| {}).await;
    let nodes = plane.0.nodes();
    nodes
        .taint("node-0", "a", "", "PreferNoSchedule")
        .await
        .unwrap();
    for name in ["a", "b"] {
        plane.create(PODS, &crate::support::pod(name)).await;
    }
    eventually(|| async { node_of(&plane, "b").await == "node-1" }).await;
    assert_eq!(node_of(&plane, "a").await, "node-1");
    nodes.taint("node-1", "b", "", "NoSchedule").await.unwrap();
    let mut pod = crate::support::pod("p");
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    plane.create(PODS, &pod).await;
    eventually(|| async { node_of(&plane, "p").await == "node-0" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn anti_affinity_separates_pods() {
    let plane = plane(2, |_| {}).await;
    let away = |name: &str| {
        let mut pod = crate::support::pod(name);
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": {"matchLabels": {"app": "x"}},
                "topologyKey": "kubernetes.io/hostname",
            }],
        }});
        pod
    };
    for name in ["a", "b", "p"] {
        plane.create(PODS, &away(name)).await;
    }
    let why = message(&plane, POD).await;
    assert!(
        why.starts_with("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."),
        "{why}"
    );
    // Other pods are kept away from its node.
    plane.create(PODS, &crate::support::pod("q")).await;
    let why = message(&plane, &format!("{PODS}/q")).await;
    let reason = "2 node(s) didn't satisfy existing pods anti-affinity rules";
    assert!(why.contains(reason), "{why}");
    plane.0.pods().delete("default", "b", None).await.unwrap();
    eventually(|| async { node_of(&plane, "p").await == "node-1" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn held_pods_wait_for_their_release() {
    let plane = plane(1, |actors| {
        actors.scheduler =
            Some(SchedulerConfig::default().hold([PodMatcher::default().name("held-*")]));
    })
    .await;
    let mut noted = crate::support::pod("noted");
    let hold = "scheduler.test-control-plane/hold";
    noted["metadata"]["annotations"] = json!({hold: ""});
    plane.create(PODS, &noted).await;
    plane.create(PODS, &crate::support::pod("held-0")).await;
    plane.0.pods().hold("default", "p").await;
    plane.create(PODS, &crate::support::pod("p")).await;
    for name in ["noted", "held-0", "p"] {
        let why = message(&plane, &format!("{PODS}/{name}")).await;
        assert!(
            why.starts_with("0/1 nodes are available: 1 Insufficient cpu."),
            "{why}"
        );
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    for name in ["noted", "held-0", "p"] {
        assert!(node_of(&plane, name).await.is_empty(), "{name}");
    }
    plane.0.pods().release("default", "p").await;
    plane.0.pods().release("default", "held-0").await;
    let free = json!({"metadata": {"annotations": {hold: null}}});
    plane
        .call(Method::PATCH, &format!("{PODS}/noted"), &free)
        .await;
    for name in ["noted", "held-0", "p"] {
        eventually(|| async { !node_of(&plane, name).await.is_empty() }).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gated_pods_wait_and_binding_can_be_delayed() {
    let plane = plane(1, |actors| {
        actors.scheduler = Some(SchedulerConfig::default().bind_delay(Duration::from_secs(7)));
    })
    .await;
    let mut pod = crate::support::pod("p");
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    plane.create(PODS, &pod).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(node_of(&plane, "p").await.is_empty());
    assert_eq!(
        plane.get(POD).await["status"]["conditions"],
        json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    );
    let open = json!({"spec": {"schedulingGates": null}});
    plane.call(Method::PATCH, POD, &open).await;
    let start = Instant::now();
    eventually(|| async { !node_of(&plane, "p").await.is_empty() }).await;
    assert_eq!(start.elapsed().as_secs(), 7);
    plane.stop().await;
}
