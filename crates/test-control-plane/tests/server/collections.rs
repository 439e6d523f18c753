//! Collections: order, pages and deletion.

use crate::support::{Plane, get_as};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const ALL: &str = "/api/v1/configmaps?labelSelector=mine";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Namespaces in the order of their storage keys, where a slash follows the name.
const NAMESPACES: [&str; 4] = ["prod-eu", "prod-us", "prod", "prod0"];

async fn with_maps() -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    for namespace in ["prod", "prod0", "prod-us", "prod-eu"] {
        let object = json!({"metadata": {"name": namespace}});
        plane.create("/api/v1/namespaces", &object).await;
        for name in ["b", "a-b", "a"] {
            let object = json!({"metadata": {"name": name, "labels": {"mine": ""}}});
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            plane.create(&path, &object).await;
        }
    }
    plane
}

fn place(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

fn places(list: &Value) -> Vec<String> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(place)
        .collect()
}

fn expected() -> Vec<String> {
    let names = ["a", "a-b", "b"];
    let all = NAMESPACES
        .iter()
        .flat_map(|ns| names.map(|name| format!("{ns}/{name}")));
    all.collect()
}

#[tokio::test(start_paused = true)]
async fn lists_follow_the_order_of_storage_keys() {
    let plane = with_maps().await;
    let list = plane.get(ALL).await;
    assert_eq!(places(&list), expected());
    // The same holds at an earlier version with later changes.
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    plane
        .call(
            Method::DELETE,
            "/api/v1/namespaces/prod/configmaps/a",
            &Value::Null,
        )
        .await;
    let exact = format!("{ALL}&resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(places(&plane.get(&exact).await), expected());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_any_size_are_complete() {
    let plane = with_maps().await;
    for limit in 1..=12 {
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let list = plane
                .get(&format!("{ALL}&limit={limit}&continue={token}"))
                .await;
            seen.extend(places(&list));
            match list["metadata"]["continue"].as_str() {
                Some(next) => next.clone_into(&mut token),
                None => break,
            }
        }
        assert_eq!(seen, expected(), "limit {limit}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_starts_in_the_same_order() {
    let plane = with_maps().await;
    let path = format!("{ALL}&watch=1&timeoutSeconds=1");
    let answer = get_as(plane.0.server(), &path, "").await;
    let text = answer.text();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let seen: Vec<String> = events.map(|event: Value| place(&event["object"])).collect();
    assert_eq!(seen, expected());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn collection_deletion_can_be_paged() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    for name in ["a", "b", "c", "d"] {
        let object = json!({"metadata": {"name": name}, "data": {"k": "v"}});
        plane.create(MAPS, &object).await;
    }
    let names = |list: &Value| {
        let names = list["items"].as_array().unwrap().iter();
        let names = names.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let path = format!("{MAPS}?limit=2");
    let (code, page) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((code, names(&page)), (200, vec!["a".into(), "b".into()]));
    assert_eq!(page["kind"], "ConfigMapList");
    assert_eq!(page["metadata"]["remainingItemCount"], 2);
    assert_eq!(names(&plane.get(MAPS).await), ["c", "d"]);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let path = format!("{MAPS}?limit=1&continue={token}");
    let (_, page) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(names(&page), ["c"]);
    assert!(page["metadata"]["continue"].is_string());
    // Without a limit, everything is deleted.
    let (_, page) = plane.call(Method::DELETE, MAPS, &Value::Null).await;
    assert_eq!(names(&page), ["d"]);
    assert_eq!(page["metadata"].get("continue"), None);
    plane.stop().await;
}
