//! Lists, watches and the log behind them.

use std::time::Duration;

use crate::support::Plane;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::{ServerConfig, TestControlPlane};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

async fn create(plane: &Plane, name: &str, app: &str) -> Value {
    let body = json!({"metadata": {"name": name, "labels": {"app": app}}});
    plane.create(MAPS, &body).await
}

/// Returns the lines of a watch until its timeout.
async fn watch(plane: &Plane, query: &str) -> Vec<Value> {
    let uri = format!("{MAPS}?watch=1&timeoutSeconds=10&{query}");
    let request = Request::builder()
        .uri(uri)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    assert_eq!(reply.status(), 200);
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn short(events: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .map(|e| {
            format!(
                "{} {}",
                text(&e["type"]),
                text(&e["object"]["metadata"]["name"])
            )
        })
        .collect()
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

async fn plane_with(config: ServerConfig) -> Plane {
    let builder = TestControlPlane::builder().server_config(config);
    Plane::new(builder.start().await)
}

#[tokio::test(start_paused = true)]
async fn pages_share_one_snapshot() {
    let plane = plane().await;
    for name in ["a", "b", "c", "d", "e"] {
        create(&plane, name, "x").await;
    }
    let first = plane.get(&format!("{MAPS}?limit=2")).await;
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    plane
        .call(Method::DELETE, &format!("{MAPS}/c"), &json!({}))
        .await;
    create(&plane, "cc", "x").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = plane.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = plane.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none());

    // After compaction, the rest can be listed at the newest state.
    let store = plane.0.server().store();
    store.compact(store.revision());
    let path = format!("{MAPS}?limit=2&continue={token}");
    let (code, status) = plane.call(Method::GET, &path, &Value::Null).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let token = status["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        names(&plane.get(&format!("{MAPS}?continue={token}")).await),
        ["e"]
    );
}

#[tokio::test(start_paused = true)]
async fn list_has_the_stores_revision() {
    let plane = plane().await;
    let created = create(&plane, "a", "x").await;
    let before = version(&plane.get(MAPS).await);
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    let list = plane.get(MAPS).await;
    assert_eq!(version(&list), before + 1);
    assert_eq!(version(&list["items"][0]), version(&created));
    let exact = format!(
        "{MAPS}?resourceVersion={}&resourceVersionMatch=Exact",
        before - 1
    );
    assert_eq!(plane.get(&exact).await["items"], json!([]));
    // With resourceVersion=0 the limit is ignored.
    create(&plane, "b", "x").await;
    let any = plane
        .get(&format!("{MAPS}?resourceVersion=0&limit=1"))
        .await;
    assert_eq!(any["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn watch_replays_the_log_through_its_selector() {
    let plane = plane().await;
    let start = version(&create(&plane, "a", "x").await);
    let path = format!("{MAPS}/a");
    let label = |app: &str| json!({"metadata": {"labels": {"app": app}}});
    plane
        .call(Method::PATCH, &path, &json!({"data": {"k": "v"}}))
        .await;
    let (_, left) = plane.call(Method::PATCH, &path, &label("y")).await;
    plane
        .call(Method::PATCH, &path, &json!({"data": {"k": "w"}}))
        .await;
    plane.call(Method::PATCH, &path, &label("x")).await;
    plane.call(Method::DELETE, &path, &json!({})).await;
    let query = format!("resourceVersion={start}&labelSelector=app%3Dx");
    let events = watch(&plane, &query).await;
    assert_eq!(
        short(&events),
        ["MODIFIED a", "DELETED a", "ADDED a", "DELETED a"]
    );
    // Leaving the selection: the old object with the new version.
    assert_eq!(events[1]["object"]["metadata"]["labels"]["app"], "x");
    assert_eq!(version(&events[1]["object"]), version(&left));
    assert!(version(&events[3]["object"]) > version(&events[2]["object"]));
}

#[tokio::test(start_paused = true)]
async fn watch_below_the_window_ends_with_an_error_event() {
    let config = ServerConfig::default().log_window(3);
    let plane = plane_with(config).await;
    for name in ["a", "b", "c", "d"] {
        create(&plane, name, "x").await;
    }
    let events = watch(&plane, "resourceVersion=2").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "ERROR");
    assert_eq!(events[0]["object"]["code"], 410);
    assert_eq!(events[0]["object"]["reason"], "Expired");
    // The current objects are always available.
    let query = "resourceVersion=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(watch(&plane, query).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_typed_and_end_the_initial_events() {
    let config = ServerConfig::default().bookmark_interval(Duration::from_secs(3));
    let plane = plane_with(config).await;
    create(&plane, "a", "x").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = watch(&plane, query).await;
    assert_eq!(events[0]["type"], "ADDED");
    let end = &events[1]["object"];
    assert_eq!(
        (&end["kind"], &end["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    assert_eq!(
        end["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let later = &events[2..];
    assert!(later.len() >= 2, "{later:?}");
    assert!(later.iter().all(|e| e["type"] == "BOOKMARK"));
    assert!(
        later
            .iter()
            .all(|e| e["object"]["metadata"].get("annotations").is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn slow_watch_ends_after_the_window() {
    let config = ServerConfig::default().log_window(5);
    let plane = plane_with(config).await;
    let uri = format!("{MAPS}?watch=1");
    let request = Request::builder()
        .uri(uri)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    for i in 0..20 {
        create(&plane, &format!("m{i}"), "x").await;
    }
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    assert!(bytes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn metadata_watch_returns_metadata() {
    let plane = plane().await;
    create(&plane, "a", "x").await;
    let request = Request::builder()
        .uri(format!("{MAPS}?watch=1&timeoutSeconds=1"))
        .header(
            "Accept",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .body(Full::new(Bytes::new()))
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let event: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    let request = Request::builder()
        .uri(MAPS)
        .header("Accept", "text/html")
        .body(Full::new(Bytes::new()))
        .unwrap();
    assert_eq!(plane.0.server().serve(request).await.unwrap().status(), 406);
}
