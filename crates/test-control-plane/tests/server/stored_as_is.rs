//! Objects stored verbatim by the test.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

use crate::support::Plane;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

/// Returns a set that strict parsers reject.
fn odd() -> Vec<u8> {
    let deep = format!("{}{}", "[".repeat(9000), "]".repeat(9000));
    let text = format!(
        "{{\"kind\":\"StatefulSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{{\"name\":\"web\",\
         \"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"7\",\
         \"labels\":{{\"app\":\"web\"}}}},\"spec\":{{\"replicas\":-0,\"template\":{{\"metadata\":{{\
         \"annotations\":{{\"a\":\"x\\ud800\"}},\"managedFields\":[{{\"fieldsV1\":{{\"f:a\":1.50,\
         \"f:a\":\"BYTE\",\"f:b\":{deep}}}}}]}}}}}}}}"
    );
    let (before, after) = text.split_once("BYTE").unwrap();
    [before.as_bytes(), b"\xff", after.as_bytes()].concat()
}

async fn bytes(plane: &Plane, path: &str) -> Vec<u8> {
    let request = Request::builder().method(Method::GET).uri(path);
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    let body = reply.into_body().collect().await.unwrap();
    body.to_bytes().to_vec()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns the text after the metadata.
fn spec(text: &[u8]) -> &[u8] {
    let at = text.windows(7).position(|part| part == b"\"spec\":");
    &text[at.unwrap()..]
}

#[tokio::test(start_paused = true)]
async fn reads_show_stored_bytes() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.0.server().store_as_is(&odd()).unwrap();
    let revision = plane.0.server().store().revision();

    let read = bytes(&plane, &format!("{SETS}/web")).await;
    assert_eq!(spec(&read), [spec(&odd()), b"\n"].concat());
    let version = format!("\"resourceVersion\":\"{revision}\"");
    assert!(has(&read, version.as_bytes()));

    let list = bytes(&plane, &format!("{SETS}?labelSelector=app%3Dweb")).await;
    assert!(has(&list, spec(&odd())));
    let watch = format!(
        "{SETS}?watch=1&timeoutSeconds=1&resourceVersion={}",
        revision - 1
    );
    let watched = bytes(&plane, &watch).await;
    assert!(has(&watched, b"\"type\":\"ADDED\""));
    assert!(has(&watched, spec(&odd())));
}

#[tokio::test(start_paused = true)]
async fn writes_replace_stored_bytes() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.0.server().store_as_is(&odd()).unwrap();
    let patch = json!({"status": {"replicas": 0}, "metadata": {"annotations": {"a": "b"}}});
    let content_type = "application/merge-patch+json";
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{SETS}/web/status"))
        .header("content-type", content_type)
        .body(Full::from(patch.to_string()))
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    assert_eq!(reply.status(), 200);
    let read = bytes(&plane, &format!("{SETS}/web")).await;
    // Verbatim data stays; the rest is in the server's form.
    assert!(has(&read, b"{\"f:a\":1.50,\"f:a\":\"\xff\",\"f:b\":[[["));
    assert!(has(&read, "\"a\":\"x\u{fffd}\"".as_bytes()));
    assert!(has(&read, b"\"annotations\":{\"a\":\"b\"}"));
}

#[tokio::test(start_paused = true)]
async fn raw_objects_have_defaults_but_break_rules() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {"containers": [{"name": "NOT_A_LABEL", "image": "a:1"}]},
    });
    plane.0.store_raw(&pod).unwrap();
    let read = bytes(&plane, "/api/v1/namespaces/default/pods/old").await;
    let read: serde_json::Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(read["spec"]["containers"][0]["name"], "NOT_A_LABEL");
    assert_eq!(read["spec"]["restartPolicy"], "Always");
    assert!(read["metadata"]["uid"].is_string());
    assert_eq!(read["metadata"]["generation"], 1);

    let wrong = plane.0.store_raw(&json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {"containers": 7},
    }));
    let text = wrong.unwrap_err().to_string();
    assert!(
        text.starts_with("Pod in version \"v1\" cannot be handled"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn objects_without_a_kind_are_rejected() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let before = server.store().revision();
    let error = server.store_as_is(b"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}");
    assert_eq!(error.unwrap_err().to_string(), "the object has no name");
    assert_eq!(server.store().revision(), before);
}
