//! Basic behaviour of kubelet, scheduler, volume binder, garbage collector and namespace
//! controller.

use std::time::Duration;

use crate::support::{Plane, eventually};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, Outcome, PodBehaviour};
use serde_json::json;

fn slow() -> KubeletConfig {
    KubeletConfig::new(
        PodBehaviour::default()
            .start_delay(Duration::from_secs(2))
            .ready_delay(Duration::from_secs(3))
            .stop_delay(Duration::from_secs(5))
            .outcome(Outcome::Ready),
    )
}

#[tokio::test(start_paused = true)]
async fn pod_is_bound_runs_becomes_ready_and_stops() {
    let plane = Plane::new(TestControlPlane::builder().kubelet(slow()).start().await);
    let started = tokio::time::Instant::now();
    plane
        .create("/api/v1/namespaces/default/pods", &crate::support::pod("p"))
        .await;
    let path = "/api/v1/namespaces/default/pods/p";
    eventually(|| async { plane.get(path).await["spec"]["nodeName"].is_string() }).await;
    assert_eq!(plane.get(path).await["status"]["phase"], "Pending");
    eventually(|| async { plane.get(path).await["status"]["phase"] == "Running" }).await;
    assert_eq!(started.elapsed().as_secs(), 2);
    assert!(!crate::support::is_ready(&plane.get(path).await));
    eventually(|| async { crate::support::is_ready(&plane.get(path).await) }).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    let (code, pod) = plane.call(Method::DELETE, path, &json!({})).await;
    assert_eq!(
        (code, &pod["metadata"]["deletionGracePeriodSeconds"]),
        (200, &json!(30))
    );
    assert_eq!(pod["metadata"]["generation"], 2);
    eventually(|| async { plane.code(path).await == 404 }).await;
    assert_eq!(started.elapsed().as_secs(), 10);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn annotations_determine_a_pods_outcome() {
    let plane = Plane::new(
        TestControlPlane::builder()
            .kubelet(KubeletConfig::default())
            .start()
            .await,
    );
    let path = "/api/v1/namespaces/default/pods/p";
    let key = "kubelet.test-control-plane/outcome";
    let mut pod = crate::support::pod("p");
    pod["metadata"]["annotations"] = json!({key: "never-ready"});
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    eventually(|| async { plane.get(path).await["status"]["phase"] == "Running" }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!crate::support::is_ready(&plane.get(path).await));
    let annotate = |outcome: &str| json!({"metadata": {"annotations": {key: outcome}}});
    plane.call(Method::PATCH, path, &annotate("ready")).await;
    eventually(|| async { crate::support::is_ready(&plane.get(path).await) }).await;
    plane
        .call(Method::PATCH, path, &annotate("never-ready"))
        .await;
    eventually(|| async { !crate::support::is_ready(&plane.get(path).await) }).await;
    plane.call(Method::PATCH, path, &annotate("fails")).await;
    eventually(|| async { plane.get(path).await["status"]["phase"] == "Failed" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_waits_for_its_claims() {
    let builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    let plane = Plane::new(builder.volume_binder().start().await);
    let mut pod = crate::support::pod("p");
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    let path = "/api/v1/namespaces/default/pods/p";
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(plane.get(path).await["status"]["phase"], "Pending");
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = plane.create(claims, &crate::support::claim("data")).await;
    eventually(|| async { crate::support::is_ready(&plane.get(path).await) }).await;
    let claim_path = format!("{claims}/data");
    let bound = plane.get(&claim_path).await;
    assert_eq!(bound["status"]["phase"], "Bound");
    let volume = format!(
        "/api/v1/persistentvolumes/pvc-{}",
        claim["metadata"]["uid"].as_str().unwrap()
    );
    assert_eq!(plane.get(&volume).await["status"]["phase"], "Bound");

    // A claim in use stays until its pod is deleted; its volume is deleted with it.
    plane.call(Method::DELETE, &claim_path, &json!({})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(plane.code(&claim_path).await, 200);
    plane.call(Method::DELETE, path, &json!({})).await;
    eventually(|| async { plane.code(&claim_path).await == 404 }).await;
    eventually(|| async { plane.code(&volume).await == 404 }).await;
    plane.stop().await;
}
