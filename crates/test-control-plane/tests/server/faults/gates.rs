//! Gates.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::faults::{GatePoint, RequestMatcher};
use kube_test_control_plane::route::Verb;
use serde_json::json;
use tokio::task::JoinSet;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn creates() -> RequestMatcher {
    RequestMatcher::any().verb(Verb::Create)
}

/// Creates objects with these names concurrently.
fn create_all(plane: &TestControlPlane, names: &[&'static str]) -> JoinSet<u16> {
    let mut tasks = JoinSet::new();
    for &name in names {
        let server = plane.service();
        tasks.spawn(async move {
            let body = json!({"metadata": {"name": name}});
            server.call_json(Method::POST, MAPS, "test", &body).await.0
        });
    }
    tasks
}

fn stored(plane: &TestControlPlane) -> Vec<String> {
    let (_, objects) = plane.server().store().list("configmaps", "default");
    let mut objects: Vec<_> = objects
        .iter()
        .map(|o| (o.resource_version, o.key.name.to_string()))
        .collect();
    objects.sort();
    objects.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_pass_in_the_tests_order() {
    let plane = TestControlPlane::builder().start().await;
    let gate = plane.server().faults().gate(creates());
    let mut tasks = create_all(&plane, &["a", "b", "c"]);
    let waiting = gate.arrived(3).await;
    let names: Vec<&str> = waiting.iter().map(|facts| facts.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(stored(&plane).is_empty());

    assert!(gate.release_matching(|facts| facts.name == "c"));
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    assert!(!gate.release_matching(|facts| facts.name == "c"));
    gate.release();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    assert_eq!(gate.waiting().len(), 1);
    gate.open();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    assert_eq!(stored(&plane), ["c", "a", "b"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gate_after_the_commit_delays_only_the_response() {
    let plane = TestControlPlane::builder().start().await;
    let faults = plane.server().faults();
    let gate = faults.gate_at(GatePoint::AfterCommit, creates());
    let mut tasks = create_all(&plane, &["a"]);
    gate.arrived(1).await;
    assert_eq!(stored(&plane), ["a"]);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(tasks.try_join_next().is_none());
    drop(gate);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_leaves_the_gate() {
    let plane = TestControlPlane::builder().start().await;
    let gate = plane.server().faults().gate(creates());
    let mut tasks = create_all(&plane, &["a"]);
    gate.arrived(1).await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    assert!(gate.waiting().is_empty());
    gate.release();
    let mut tasks = create_all(&plane, &["b", "c"]);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    plane.server().faults().clear();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 201);
    assert_eq!(stored(&plane), ["b", "c"]);
    plane.stop().await;
}
