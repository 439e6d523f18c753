//! Resizing of claims.

use crate::support::{Plane, claim};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const NOT_DYNAMIC: &str = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned \
     pvc can be resized and the storageclass that provisions the pvc must support resize";

/// Creates a bound claim of one gibibyte with this class.
async fn bound(class: &Value) -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    for (name, expands) in [("fixed", json!(null)), ("growing", json!(true))] {
        let class = json!({
            "metadata": {"name": name}, "provisioner": "example.com/p",
            "allowVolumeExpansion": expands,
        });
        plane.create(CLASSES, &class).await;
    }
    let mut object = claim("c");
    object["spec"]["storageClassName"] = class.clone();
    object["spec"]["volumeName"] = json!("v");
    plane.create(CLAIMS, &object).await;
    let status = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
    let path = format!("{CLAIMS}/c/status");
    let (code, answer) = plane.call(Method::PATCH, &path, &status).await;
    assert_eq!(code, 200, "{answer}");
    plane
}

async fn resize(plane: &Plane, size: &str) -> (u16, Value) {
    let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let path = format!("{CLAIMS}/c");
    plane.call(Method::PATCH, &path, &patch).await
}

#[tokio::test(start_paused = true)]
async fn claim_grows_if_its_class_allows_it() {
    let plane = bound(&json!("growing")).await;
    assert_eq!(resize(&plane, "3Gi").await.0, 200);
    // The current capacity is too small, any larger size is allowed.
    let (code, answer) = resize(&plane, "1Gi").await;
    assert_eq!(code, 422);
    let cause = &answer["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.resources.requests.storage");
    assert_eq!(
        cause["message"],
        "Forbidden: field can not be less than status.capacity"
    );
    assert_eq!(resize(&plane, "2Gi").await.0, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn claim_of_any_other_class_keeps_its_size() {
    for class in ["fixed", "missing", ""] {
        let plane = bound(&json!(class)).await;
        let (code, answer) = resize(&plane, "2Gi").await;
        assert_eq!(
            (code, &answer["message"]),
            (403, &json!(NOT_DYNAMIC)),
            "{class:?}"
        );
        assert_eq!(answer["reason"], "Forbidden");
        // The same amount with another unit is no growth.
        assert_eq!(resize(&plane, "1024Mi").await.0, 200, "{class:?}");
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn unbound_claim_is_immutable() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.create(CLAIMS, &claim("c")).await;
    let (code, answer) = resize(&plane, "2Gi").await;
    assert_eq!(code, 422);
    assert_eq!(answer["details"]["causes"][0]["field"], "spec");
    plane.stop().await;
}
