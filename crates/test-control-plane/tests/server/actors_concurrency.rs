//! Actors with slow, blocked or failing requests.

use std::time::Duration;

use crate::support::{Plane, eventually, is_ready, pod};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, NodesConfig};
use kube_test_control_plane::faults::{FaultAction, FaultRule, RequestMatcher};
use kube_test_control_plane::reply::ApiError;
use serde_json::{Value, json};
use tokio::time::Instant;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn path(name: &str) -> String {
    format!("{PODS}/{name}")
}

fn agent(actor: &str) -> RequestMatcher {
    RequestMatcher::any().user_agent(format!("test-control-plane/{actor}"))
}

async fn plane() -> Plane {
    let builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    Plane::new(builder.start().await)
}

async fn running(plane: &Plane) -> Vec<String> {
    let pods = plane.0.pods().running().await;
    pods.into_iter().map(|pod| pod.name).collect()
}

async fn is_running(plane: &Plane, name: &str) -> bool {
    plane.get(&path(name)).await["status"]["phase"] == "Running"
}

#[tokio::test(start_paused = true)]
async fn slow_requests_for_one_pod_delay_no_other() {
    let plane = plane().await;
    let delay = FaultAction::Delay(Duration::from_secs(10).into());
    let faults = plane.0.server().faults();
    faults.add(FaultRule::new(agent("kubelet"), delay));
    let started = Instant::now();
    for i in 0..100 {
        plane.create(PODS, &pod(&format!("p-{i}"))).await;
    }
    eventually(|| async {
        let (_, list) = plane.call(Method::GET, PODS, &Value::Null).await;
        list["items"].as_array().unwrap().iter().all(is_ready)
    })
    .await;
    let took = started.elapsed().as_secs();
    assert!((10..30).contains(&took), "{took}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn blocked_pod_delays_no_order_and_no_other_pod() {
    let plane = plane().await;
    let gate = plane
        .0
        .server()
        .faults()
        .gate(agent("kubelet").name("web-0"));
    for name in ["web-0", "web-1"] {
        plane.create(PODS, &pod(name)).await;
    }
    eventually(|| is_running(&plane, "web-1")).await;
    assert_eq!(gate.waiting().len(), 1);
    // Its node runs it but can't report it.
    assert_eq!(running(&plane).await, ["web-0", "web-1"]);
    assert!(!is_running(&plane, "web-0").await);
    plane.0.pods().set_ready("default", "web-0", false).await;
    plane.0.pods().set_ready("default", "web-1", false).await;
    eventually(|| async { !is_ready(&plane.get(&path("web-1")).await) }).await;
    gate.open();
    eventually(|| is_running(&plane, "web-0")).await;
    // The missed changes are reported afterwards.
    eventually(|| async { !is_ready(&plane.get(&path("web-0")).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pending_binding_reserves_resources() {
    let nodes = NodesConfig::numbered(1).allocatable("pods", "1");
    let builder = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .configure_actors(|actors| actors.nodes = nodes);
    let plane = Plane::new(builder.start().await);
    let gate = plane.0.server().faults().gate(agent("scheduler").name("a"));
    plane.create(PODS, &pod("a")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    plane.create(PODS, &pod("b")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let b = plane.get(&path("b")).await;
    assert_eq!(b["spec"]["nodeName"], Value::Null);
    assert_eq!(b["status"]["conditions"][0]["reason"], "Unschedulable");
    gate.open();
    eventually(|| is_running(&plane, "a")).await;
    // A failed binding releases its resources.
    plane.call(Method::DELETE, &path("a"), &json!({})).await;
    eventually(|| is_running(&plane, "b")).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn injected_404_does_not_count_as_a_deletion() {
    let plane = plane().await;
    let missing = || FaultAction::respond(ApiError::new(404, "NotFound", "made up"));
    let faults = plane.0.server().faults();
    for actor in ["scheduler", "kubelet"] {
        faults.inject(agent(actor), 1, missing());
    }
    plane.create(PODS, &pod("p")).await;
    eventually(|| async { is_ready(&plane.get(&path("p")).await) }).await;
    faults.inject(agent("kubelet"), 2, missing());
    plane.call(Method::DELETE, &path("p"), &json!({})).await;
    eventually(|| async { plane.code(&path("p")).await == 404 }).await;
    plane.stop().await;
}
