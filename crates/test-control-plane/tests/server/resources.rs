//! Served resources and methods.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, pod};

async fn plane() -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    plane
}

#[tokio::test(start_paused = true)]
async fn unsupported_resource_methods_are_rejected() {
    let plane = plane().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (method, path, code) in [
        (Method::GET, reviews.to_owned(), 405),
        (Method::DELETE, reviews.to_owned(), 405),
        (Method::GET, format!("{reviews}/x"), 405),
        (Method::GET, "/api/v1/bindings".to_owned(), 404),
        (Method::GET, "/api/v1/namespaces/n/bindings".to_owned(), 405),
        (Method::DELETE, "/api/v1/namespaces".to_owned(), 405),
        (Method::POST, "/api/v1/componentstatuses".to_owned(), 405),
        (
            Method::GET,
            "/api/v1/namespaces/n/pods/p/binding".to_owned(),
            405,
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/n/pods/p/status".to_owned(),
            405,
        ),
        (
            Method::PUT,
            "/api/v1/namespaces/n/pods/p/log".to_owned(),
            405,
        ),
        (
            Method::GET,
            "/api/v1/namespaces/n/pods/p/scale".to_owned(),
            404,
        ),
        (Method::GET, "/api/v1/namespaces/n/nodes".to_owned(), 404),
    ] {
        let (found, body) = plane.call(method.clone(), &path, &Value::Null).await;
        assert_eq!(found, code, "{method} {path}: {body}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn kubelet_subresources_of_pods_fail() {
    let plane = plane().await;
    plane.create("/api/v1/namespaces/n/pods", &pod("p")).await;
    let path = "/api/v1/namespaces/n/pods/p";
    let (code, _) = plane
        .call(Method::GET, &format!("{path}/log"), &Value::Null)
        .await;
    assert_eq!(code, 200);
    let log = format!("{path}/log?container=other");
    let (code, body) = plane.call(Method::GET, &log, &Value::Null).await;
    assert_eq!(code, 400);
    assert_eq!(body["message"], "container other is not valid for pod p");
    let (code, body) = plane
        .call(Method::POST, &format!("{path}/exec"), &Value::Null)
        .await;
    assert_eq!(code, 400);
    assert_eq!(body["message"], "pod p does not have a host assigned");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_parts_change_only_through_subresources() {
    let plane = plane().await;
    let mut body = pod("p");
    body["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    plane.create("/api/v1/namespaces/n/pods", &body).await;
    let path = "/api/v1/namespaces/n/pods/p";
    let patch = json!({
        "metadata": {"labels": {"app": "y"}},
        "spec": {
            "ephemeralContainers": [{"name": "e", "image": "img:1"}],
            "containers": [{"name": "c", "image": "img:2", "resources": {"limits": {"cpu": "1"}}}],
        },
    });
    let below = format!("{path}/ephemeralcontainers");
    let (code, pod) = plane.call(Method::PATCH, &below, &patch).await;
    assert_eq!(code, 200, "{pod}");
    assert_eq!(pod["spec"]["ephemeralContainers"][0]["name"], "e");
    assert_eq!(pod["spec"]["containers"][0]["image"], "img:1");
    assert_eq!(pod["metadata"]["labels"]["app"], "x");
    let resize = format!("{path}/resize");
    let (code, pod) = plane.call(Method::PATCH, &resize, &patch).await;
    assert_eq!(code, 200, "{pod}");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"]["cpu"], "1");
    assert_eq!(container["image"], "img:1");
    assert_eq!(pod["metadata"]["generation"], 3);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn api_server_has_a_service() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let service = plane
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await;
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 6443);
    plane.stop().await;
}
