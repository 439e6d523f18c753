//! Oversized objects.

use crate::support::{Plane, exchange};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const TOO_LARGE: &str = "etcdserver: request is too large";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

/// Returns a set whose containers have this number of bytes of arguments.
fn set(bytes: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web",
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [
                    {"name": "c", "image": "i", "args": ["x".repeat(bytes)]},
                ]},
            },
        },
    })
}

fn refusal(message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "code": 500,
    })
}

#[tokio::test]
async fn every_write_rejects_objects_over_etcds_limit() {
    let plane = plane().await;
    let path = format!("{SETS}/web");
    let (code, answer) = plane.call(Method::POST, SETS, &set(1_600_000)).await;
    assert_eq!((code, answer), (500, refusal(TOO_LARGE)));
    plane.create(SETS, &set(1_500_000)).await;
    let (code, answer) = plane.call(Method::PUT, &path, &set(1_600_000)).await;
    assert_eq!((code, answer), (500, refusal(TOO_LARGE)));
    // The added annotation is below the limit of annotations.
    let grown = json!({"metadata": {"annotations": {"a": "x".repeat(120_000)}}});
    let patch = [("Content-Type", "application/merge-patch+json")];
    let server = plane.0.server();
    let answer = exchange(server, Method::PATCH, &path, &patch, grown.to_string()).await;
    assert_eq!((answer.code, answer.json()), (500, refusal(TOO_LARGE)));
    let apply = [("Content-Type", "application/apply-patch+yaml")];
    let path = format!("{path}?fieldManager=m&force=true");
    let body = set(1_600_000).to_string();
    let answer = exchange(server, Method::PATCH, &path, &apply, body).await;
    assert_eq!((answer.code, answer.json()), (500, refusal(TOO_LARGE)));
    let (code, _) = plane
        .call(Method::POST, &format!("{SETS}?dryRun=All"), &set(1_600_000))
        .await;
    assert_eq!(code, 409, "unstored objects have no limit");
    plane.stop().await;
}

#[tokio::test]
async fn objects_over_the_etcd_clients_limit_are_rejected() {
    let plane = plane().await;
    let (code, answer) = plane.call(Method::POST, SETS, &set(2_500_000)).await;
    let message = answer["message"].as_str().unwrap();
    let start = "rpc error: code = ResourceExhausted desc = trying to send message larger than \
                 max (250";
    assert_eq!(code, 500);
    assert!(message.starts_with(start), "{message}");
    assert!(message.ends_with(" vs. 2097152)"), "{message}");
    plane.stop().await;
}

#[tokio::test]
async fn limit_applies_to_protobuf_not_json() {
    let plane = plane().await;
    let secret = json!({
        "metadata": {"name": "s", "annotations": {"a": "x".repeat(250_000)}},
        "data": {"k": "AAAA".repeat(349_000)},
    });
    assert!(secret.to_string().len() > 1_600_000);
    plane
        .create("/api/v1/namespaces/default/secrets", &secret)
        .await;
    plane.stop().await;
}
