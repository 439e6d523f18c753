//! Invariant violations, and stolen leases.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crate::support::{Plane, eventually, is_ready, pod};
use futures::FutureExt;
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/web-0";

async fn node(plane: &Plane) -> String {
    let pod = plane.get(POD).await;
    pod["spec"]["nodeName"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn two_running_pods_with_one_name_are_a_violation() {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    plane.create(PODS, &pod("web-0")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let pods = plane.0.pods();
    // With graceful deletion there is never more than one.
    pods.delete("default", "web-0", None).await.unwrap();
    eventually(|| async { plane.code(POD).await == 404 }).await;
    plane.create(PODS, &pod("web-0")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.0.invariants().expect_none();
    // After a forced deletion on a lost node, it keeps running.
    let lost = node(&plane).await;
    plane.0.nodes().lose(&lost).await;
    plane.0.nodes().cordon(&lost).await.unwrap();
    pods.delete("default", "web-0", Some(0)).await.unwrap();
    plane.create(PODS, &pod("web-0")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let violations = plane.0.invariants().violations();
    assert_eq!(violations.len(), 1);
    let message = &violations[0].message;
    assert!(
        message.starts_with("two pods default/web-0 run at the same time"),
        "{message}"
    );
    assert!(message.contains(&lost), "{message}");
    let expected = AssertUnwindSafe(async { plane.0.invariants().expect_none() });
    assert!(expected.catch_unwind().await.is_err());
    // The node stops it after its reconnection.
    plane.0.nodes().heal(&lost).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pods.running().await.len(), 1);
    assert_eq!(plane.0.invariants().violations().len(), 1);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lease_can_be_stolen() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let spec = json!({
        "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3,
    });
    let lease = json!({"metadata": {"name": "leader"}, "spec": spec});
    plane.create(leases, &lease).await;
    let thief = plane.0.leases();
    thief.steal("kube-system", "leader", "two").await.unwrap();
    let lease = plane.get(&format!("{leases}/leader")).await;
    let spec = &lease["spec"];
    assert_eq!(
        (
            &spec["holderIdentity"],
            &spec["leaseTransitions"],
            &spec["leaseDurationSeconds"]
        ),
        (&json!("two"), &json!(4), &json!(15))
    );
    assert!(spec["renewTime"].is_string());
    let missing = thief.steal("kube-system", "nobodys", "two").await;
    assert_eq!(missing.unwrap_err().code, 404);
    plane.stop().await;
}
