//! Protobuf bodies as kubectl and typed Go clients send them, with JSON responses, and protobuf
//! responses for clients that rank it above JSON and YAML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube_test_control_plane::{ApiServer, TestControlPlane};
use serde_json::{Value, json};

use crate::support::{Answer, Plane, exchange, get_as, pod, raw};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The `Accept` header of typed clients.
const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";

/// Returns the recorded body of a kind.
fn body(api_version: &str, kind: &str) -> Vec<u8> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test/vectors/protobuf.jsonl"
    );
    let lines = std::fs::read_to_string(path).unwrap();
    let cases = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut wanted = cases.filter(|case| {
        case["expect"]["kind"] == kind && case["expect"]["apiVersion"] == api_version
    });
    STANDARD
        .decode(wanted.next().unwrap()["body"].as_str().unwrap())
        .unwrap()
}

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    accept: &str,
    body: Vec<u8>,
) -> (u16, Value) {
    let headers = [("Content-Type", PROTOBUF), ("Accept", accept)];
    let answer = exchange(server, method, path, &headers, body).await;
    (answer.code, answer.json())
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_and_updated_from_protobuf() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let (code, namespace) = send(
        server,
        Method::POST,
        "/api/v1/namespaces",
        BOTH,
        body("v1", "Namespace"),
    )
    .await;
    assert_eq!(code, 201, "{namespace}");
    for (api_version, kind, collection) in [
        (
            "v1",
            "ServiceAccount",
            "/api/v1/namespaces/team/serviceaccounts",
        ),
        ("v1", "Service", "/api/v1/namespaces/team/services"),
        (
            "apps/v1",
            "ControllerRevision",
            "/apis/apps/v1/namespaces/team/controllerrevisions",
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "Role",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles",
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            "/apis/policy/v1/namespaces/team/poddisruptionbudgets",
        ),
    ] {
        let bytes = body(api_version, kind);
        let (code, object) = send(server, Method::POST, collection, BOTH, bytes.clone()).await;
        assert_eq!((code, &object["kind"]), (201, &json!(kind)), "{object}");
        let (code, refused) = send(server, Method::POST, collection, BOTH, bytes).await;
        assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")));
    }
    let path = "/api/v1/namespaces/team/serviceaccounts/sa";
    let (code, account) = send(
        server,
        Method::PUT,
        path,
        BOTH,
        body("v1", "ServiceAccount"),
    )
    .await;
    assert_eq!(code, 200, "{account}");
    assert_eq!(account["imagePullSecrets"], json!([{"name": "pull"}]));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bindings_evictions_and_options_accept_protobuf() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let pods = "/api/v1/namespaces/default/pods";
    plane.create(pods, &pod("p")).await;
    let path = format!("{pods}/p/binding");
    let (code, status) = send(server, Method::POST, &path, BOTH, body("v1", "Binding")).await;
    assert_eq!(
        (code, &status["status"]),
        (201, &json!("Success")),
        "{status}"
    );
    let bound = plane.get(&format!("{pods}/p")).await;
    assert_eq!(bound["spec"]["nodeName"], "node-1");
    // The eviction and the options have another uid.
    let path = format!("{pods}/p/eviction");
    let (code, status) = send(
        server,
        Method::POST,
        &path,
        BOTH,
        body("policy/v1", "Eviction"),
    )
    .await;
    assert_eq!(
        (code, &status["reason"]),
        (409, &json!("Conflict")),
        "{status}"
    );
    let path = format!("{pods}/p");
    let (code, status) = send(
        server,
        Method::DELETE,
        &path,
        BOTH,
        body("v1", "DeleteOptions"),
    )
    .await;
    assert_eq!(
        (code, &status["reason"]),
        (409, &json!("Conflict")),
        "{status}"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_messages_are_rejected() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let pods = "/api/v1/namespaces/default/pods";
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let cases = [
        (Method::POST, pods, b"{}".to_vec(), 400),
        (Method::POST, pods, Vec::new(), 400),
        (Method::POST, pods, cut(body("v1", "Pod")), 400),
        (Method::POST, pods, body("v1", "Service"), 400),
        (Method::DELETE, pods, b"k8s\0\xff".to_vec(), 500),
        (
            Method::PATCH,
            "/api/v1/namespaces/default/pods/p",
            body("v1", "Pod"),
            415,
        ),
    ];
    for (method, path, bytes, expected) in cases {
        let (code, status) = send(server, method, path, BOTH, bytes).await;
        assert_eq!(
            (code, &status["kind"]),
            (expected, &json!("Status")),
            "{status}"
        );
    }
    plane.stop().await;
}

/// Reads as a client that accepts only protobuf.
async fn get(plane: &Plane, path: &str, accept: &str) -> Answer {
    get_as(plane.0.server(), path, accept).await
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn protobuf_only_clients_get_protobuf() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let pods = "/api/v1/namespaces/default/pods";
    let path = format!("{pods}/p");
    let created = plane.create(pods, &pod("p")).await;
    let answer = get(&plane, &path, PROTOBUF).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, PROTOBUF)
    );
    assert!(answer.bytes.starts_with(b"k8s\0"));
    // Writing back the read object changes nothing.
    let (code, again) = send(server, Method::PUT, &path, BOTH, answer.bytes.to_vec()).await;
    assert_eq!((code, &again), (200, &created));
    let list = get(&plane, pods, PROTOBUF).await;
    assert_eq!((list.code, list.header("content-type")), (200, PROTOBUF));
    assert!(holds(&list.bytes, "PodList") && holds(&list.bytes, "img:1"));
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let list = get(&plane, pods, &metadata).await;
    assert!(holds(&list.bytes, "PartialObjectMetadataList") && !holds(&list.bytes, "img:1"));
    let missing = get(&plane, &format!("{pods}/q"), PROTOBUF).await;
    assert_eq!(
        (missing.code, missing.header("content-type")),
        (404, PROTOBUF)
    );
    assert!(holds(&missing.bytes, "Status") && holds(&missing.bytes, "pods \"q\" not found"));
    let table = get(
        &plane,
        pods,
        &format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"),
    )
    .await;
    assert_eq!(table.code, 406);
    assert!(holds(
        &table.bytes,
        "object *v1.Table does not implement the protobuf"
    ));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn revision_data_is_returned_unchanged() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let server = plane.0.server();
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let text = r#"{"metadata":{"name":"r"},"revision":1,"data":{"b":1,"a":{"d":2,"c":3}}}"#;
    let (code, _) = raw(
        server,
        Method::POST,
        revisions,
        "application/json",
        text.into(),
    )
    .await;
    assert_eq!(code, 201);
    let answer = get(&plane, &format!("{revisions}/r"), PROTOBUF).await;
    assert!(holds(&answer.bytes, r#"{"b":1,"a":{"d":2,"c":3}}"#));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn protobuf_watch_is_framed() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let pods = "/api/v1/namespaces/default/pods";
    plane.create(pods, &pod("p")).await;
    let query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan";
    let accept = format!("{PROTOBUF};stream=watch");
    let answer = get(&plane, &format!("{pods}?{query}"), &accept).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, accept.as_str())
    );
    let mut rest = answer.bytes.clone();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap());
        let frame = rest.split_to(4 + usize::try_from(length).unwrap());
        events.push(frame.slice(4..));
    }
    assert_eq!(events.len(), 2);
    assert!(events[0].starts_with(b"\x0a\x05ADDED\x12") && holds(&events[0], "img:1"));
    assert!(events[1].starts_with(b"\x0a\x08BOOKMARK\x12") && holds(&events[1], "k8s\0"));
    assert!(holds(&events[1], "k8s.io/initial-events-end"));
    plane.stop().await;
}
