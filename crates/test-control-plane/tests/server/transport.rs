//! Sizes, compression and headers.

use std::io::Read as _;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

use crate::support::{Plane, exchange};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn with_map(size: usize) -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let text = "x".repeat(size);
    let map = json!({"metadata": {"name": "m"}, "data": {"k": text}});
    plane.create(MAPS, &map).await;
    plane
}

#[tokio::test]
async fn oversized_bodies_are_rejected() {
    let plane = with_map(1).await;
    let text = "x".repeat(3 * 1024 * 1024);
    let map = json!({"metadata": {"name": "big"}, "data": {"a": text}});
    let answer = exchange(plane.0.server(), Method::POST, MAPS, &[], map.to_string()).await;
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Request entity too large: limit is 3145728",
            "reason": "RequestEntityTooLarge", "code": 413,
        })
    );
    // Errors in the path take precedence.
    let path = "/api/v1/namespaces/default/nothing";
    let answer = exchange(plane.0.server(), Method::POST, path, &[], map.to_string()).await;
    assert_eq!(answer.code, 404);
    plane.stop().await;
}

#[tokio::test]
async fn large_responses_are_compressed_on_request() {
    let plane = with_map(200_000).await;
    let server = plane.0.server();
    let gzip = [("Accept-Encoding", "gzip, deflate")];
    let plain = exchange(server, Method::GET, MAPS, &[], "").await;
    let small = exchange(server, Method::GET, "/api/v1/namespaces", &gzip, "").await;
    assert_eq!(plain.header("content-encoding"), "");
    assert_eq!(small.header("content-encoding"), "");
    let large = exchange(server, Method::GET, MAPS, &gzip, "").await;
    assert_eq!(large.header("content-encoding"), "gzip");
    assert_eq!(large.header("vary"), "Accept-Encoding");
    let mut text = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&*large.bytes);
    decoder.read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.bytes);
    assert!(large.bytes.len() < plain.bytes.len() / 10);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_is_never_compressed() {
    let plane = with_map(200_000).await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1");
    let headers = [
        ("Accept-Encoding", "gzip"),
        ("Accept", "application/json;stream=watch"),
    ];
    let answer = exchange(plane.0.server(), Method::GET, &path, &headers, "").await;
    assert_eq!(answer.header("content-encoding"), "");
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(answer.text().starts_with("{\"type\":\"ADDED\""));
    plane.stop().await;
}

#[tokio::test]
async fn responses_have_unique_ids() {
    let plane = with_map(1).await;
    let server = plane.0.server();
    let first = exchange(server, Method::GET, MAPS, &[], "").await;
    let second = exchange(server, Method::GET, "/nope", &[], "").await;
    assert_eq!(first.header("audit-id").len(), 36);
    assert_ne!(first.header("audit-id"), second.header("audit-id"));
    for name in [
        "x-kubernetes-pf-flowschema-uid",
        "x-kubernetes-pf-prioritylevel-uid",
    ] {
        assert_eq!(first.header(name).len(), 36);
        assert_eq!(first.header(name), second.header(name));
    }
    assert_eq!(first.header("cache-control"), "no-cache, private");
    let headers = [("Audit-Id", "mine")];
    let own = exchange(server, Method::GET, MAPS, &headers, "").await;
    assert_eq!(own.header("audit-id"), "mine");
    plane.stop().await;
}

#[tokio::test]
async fn timeout_must_be_a_duration() {
    let plane = with_map(1).await;
    let path = format!("{MAPS}?timeout=abc");
    let answer = exchange(plane.0.server(), Method::GET, &path, &[], "").await;
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "invalid timeout specified in the request URL - time: invalid duration \
                        \"abc\"",
            "reason": "BadRequest", "code": 400,
        })
    );
    let path = format!("{MAPS}?timeout=32s");
    let answer = exchange(plane.0.server(), Method::GET, &path, &[], "").await;
    assert_eq!(answer.code, 200);
    plane.stop().await;
}
