//! What kubelet, scheduler, volume binder, garbage collector and namespace controller do.

use std::time::Duration;

use crate::support::{Plane, eventually};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, Outcome, PodBehaviour};
use serde_json::json;

fn slow() -> KubeletConfig {
    KubeletConfig::new(PodBehaviour {
        start_delay: Duration::from_secs(2),
        ready_delay: Duration::from_secs(3),
        stop_delay: Duration::from_secs(5),
        outcome: Outcome::Ready,
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_then_runs_then_is_ready_then_stops() {
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
async fn annotations_decide_on_the_outcome_of_a_pod() {
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
async fn a_pod_waits_until_its_claims_are_bound() {
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

    // A claim in use stays until its pod is gone; its volume goes with it.
    plane.call(Method::DELETE, &claim_path, &json!({})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(plane.code(&claim_path).await, 200);
    plane.call(Method::DELETE, path, &json!({})).await;
    eventually(|| async { plane.code(&claim_path).await == 404 }).await;
    eventually(|| async { plane.code(&volume).await == 404 }).await;
    plane.stop().await;
}

async fn with_owner(plane: &Plane, policy: &str, block: bool) -> (String, String) {
    let maps = "/api/v1/namespaces/default/configmaps";
    let owner = plane
        .create(maps, &json!({"metadata": {"name": "owner"}}))
        .await;
    let reference = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
    });
    let dependent = json!({"metadata": {
        "name": "dependent",
        "ownerReferences": [reference],
        "finalizers": ["example.com/hold"],
    }});
    plane.create(maps, &dependent).await;
    let (owner, dependent) = (format!("{maps}/owner"), format!("{maps}/dependent"));
    plane
        .call(
            Method::DELETE,
            &owner,
            &json!({"propagationPolicy": policy}),
        )
        .await;
    (owner, dependent)
}

async fn release(plane: &Plane, path: &str) {
    let body = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/hold"],
    }});
    plane.call(Method::PATCH, path, &body).await;
}

async fn collecting() -> Plane {
    Plane::new(
        TestControlPlane::builder()
            .garbage_collector()
            .start()
            .await,
    )
}

#[tokio::test(start_paused = true)]
async fn background_deletion_takes_dependents_afterwards() {
    let plane = collecting().await;
    let (owner, dependent) = with_owner(&plane, "Background", true).await;
    assert_eq!(plane.code(&owner).await, 404);
    eventually(|| async { plane.is_deleting(&dependent).await }).await;
    release(&plane, &dependent).await;
    assert_eq!(plane.code(&dependent).await, 404);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_dependents_that_block() {
    for blocks in [true, false] {
        let plane = collecting().await;
        let (owner, dependent) = with_owner(&plane, "Foreground", blocks).await;
        eventually(|| async { plane.is_deleting(&dependent).await }).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(plane.code(&owner).await, if blocks { 200 } else { 404 });
        release(&plane, &dependent).await;
        eventually(|| async { plane.code(&owner).await == 404 }).await;
        assert_eq!(plane.code(&dependent).await, 404);
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_stay_without_the_reference() {
    let plane = collecting().await;
    let (owner, dependent) = with_owner(&plane, "Orphan", true).await;
    eventually(|| async { plane.code(&owner).await == 404 }).await;
    let dependent = plane.get(&dependent).await;
    assert!(dependent["metadata"].get("ownerReferences").is_none());
    assert!(dependent["metadata"].get("deletionTimestamp").is_none());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_lives_while_one_of_its_owners_does() {
    let plane = collecting().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut references = Vec::new();
    for name in ["a", "b"] {
        let owner = plane
            .create(maps, &json!({"metadata": {"name": name}}))
            .await;
        let uid = &owner["metadata"]["uid"];
        references.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}));
    }
    let body = json!({"metadata": {"name": "d", "ownerReferences": references}});
    plane.create(maps, &body).await;
    let path = format!("{maps}/d");
    plane
        .call(Method::DELETE, &format!("{maps}/a"), &json!({}))
        .await;
    eventually(|| async {
        plane.get(&path).await["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len()
            == 1
    })
    .await;
    plane
        .call(Method::DELETE, &format!("{maps}/b"), &json!({}))
        .await;
    eventually(|| async { plane.code(&path).await == 404 }).await;

    // An owner that never existed counts as absent, too.
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "no"});
    let body = json!({"metadata": {"name": "d", "ownerReferences": [reference]}});
    plane.create(maps, &body).await;
    eventually(|| async { plane.code(&path).await == 404 }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_first() {
    let builder = TestControlPlane::builder()
        .kubelet(slow())
        .namespace_controller();
    let plane = Plane::new(builder.start().await);
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    plane
        .create(
            "/api/v1/namespaces/n/configmaps",
            &json!({"metadata": {"name": "c"}}),
        )
        .await;
    plane
        .create("/api/v1/namespaces/n/pods", &crate::support::pod("p"))
        .await;
    let pod = "/api/v1/namespaces/n/pods/p";
    eventually(|| async { crate::support::is_ready(&plane.get(pod).await) }).await;
    let (_, namespace) = plane
        .call(Method::DELETE, "/api/v1/namespaces/n", &json!({}))
        .await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let body = json!({"metadata": {"name": "late"}});
    let (code, status) = plane
        .call(Method::POST, "/api/v1/namespaces/n/configmaps", &body)
        .await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    eventually(|| async { plane.code("/api/v1/namespaces/n").await == 404 }).await;
    assert_eq!(plane.code(pod).await, 404);
    plane.stop().await;
}
