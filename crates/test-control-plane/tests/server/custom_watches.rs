//! Watches of custom resources whose definition appears, changes and goes.

use std::time::Duration;

use futures::StreamExt;
use http::Method;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::custom_resources::{DEFINITION, DEFINITIONS, WIDGETS, definition, merge, widget};
use crate::support::{Plane, exchange};

/// Returns the types and names of the events of a watch that ends with its definition.
async fn until_end(plane: &Plane, version: &str) -> Vec<String> {
    let path = format!("/apis/example.com/{version}/widgets?watch=1&timeoutSeconds=600");
    let answer = exchange(plane.0.server(), Method::GET, &path, &[], "").await;
    let events = answer.text();
    let events = events.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let name = text(&event["object"]["metadata"]["name"]);
        format!("{} {name}", text(&event["type"]))
    });
    events.collect()
}

/// Runs `change` while a watch is open. Returns the watch's events, and true if it ended at once.
async fn watched(
    plane: &Plane,
    version: &str,
    change: impl Future<Output = ()>,
) -> (Vec<String>, bool) {
    let start = tokio::time::Instant::now();
    let (events, ()) = tokio::join!(Box::pin(until_end(plane, version)), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Box::pin(change).await;
    });
    (events, start.elapsed() < Duration::from_secs(9))
}

#[tokio::test(start_paused = true)]
async fn watches_end_when_their_definition_is_replaced() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.create(DEFINITIONS, &definition()).await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let (_, ended) = watched(&plane, "v1", merge(&plane, DEFINITION, &labels)).await;
    assert!(!ended, "labels don't concern the resource");
    let mut versions = definition()["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"]["default"] =
        json!("blue");
    let changed = json!({"spec": {"versions": versions}});
    let (_, ended) = watched(&plane, "v1", merge(&plane, DEFINITION, &changed)).await;
    assert!(ended, "the schema changed");
    plane
        .create(WIDGETS, &widget("a", &json!({"size": 1})))
        .await;
    let shown = plane.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(shown["spec"]["color"], "blue");
    versions[1]["served"] = json!(false);
    let withdrawn = json!({"spec": {"versions": versions}});
    let (events, ended) = watched(&plane, "v1beta1", merge(&plane, DEFINITION, &withdrawn)).await;
    assert!(ended, "the version is no longer served");
    assert_eq!(events, ["ADDED a"]);
    let recreated = async {
        plane.call(Method::DELETE, DEFINITION, &json!({})).await;
        let mut again = definition();
        again["spec"]["versions"] = versions.clone();
        plane.create(DEFINITIONS, &again).await;
    };
    let (events, ended) = watched(&plane, "v1", recreated).await;
    assert!(ended, "the definition is another one");
    assert_eq!(events, ["ADDED a", "DELETED a"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watcher_started_before_the_definition_sees_its_objects() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widgets: Api<DynamicObject> =
        Api::default_namespaced_with(plane.0.client(), &ApiResource::from_gvk(&kind));
    let mut events = Box::pin(watcher(widgets, watcher::Config::default()));
    assert!(matches!(events.next().await, Some(Ok(Event::Init))));
    let missing = events.next().await.unwrap();
    assert!(missing.is_err(), "no definition exists: {missing:?}");
    let mut next = async || loop {
        match tokio::time::timeout(Duration::from_secs(60), events.next()).await {
            Ok(Some(Ok(Event::Apply(found) | Event::InitApply(found)))) => {
                return format!(
                    "{} {}",
                    found.metadata.name.unwrap(),
                    found.data["spec"]["color"]
                );
            }
            Ok(Some(Ok(Event::Delete(gone)))) => {
                return format!("{} gone", gone.metadata.name.unwrap());
            }
            Ok(Some(_)) => tokio::time::sleep(Duration::from_secs(1)).await,
            silent => panic!("the watcher is silent: {silent:?}"),
        }
    };
    plane.create(DEFINITIONS, &definition()).await;
    let spec = json!({"size": 1});
    plane.create(WIDGETS, &widget("a", &spec)).await;
    assert_eq!(next().await, "a \"red\"");
    let mut changed = definition();
    let versions = &mut changed["spec"]["versions"];
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"]["default"] =
        json!("blue");
    let versions = json!({"spec": {"versions": versions}});
    merge(&plane, DEFINITION, &versions).await;
    plane.create(WIDGETS, &widget("b", &spec)).await;
    assert_eq!(next().await, "b \"blue\"");
    plane.call(Method::DELETE, DEFINITION, &json!({})).await;
    let mut gone = [next().await, next().await];
    gone.sort();
    assert_eq!(gone, ["a gone", "b gone"]);
    plane.create(DEFINITIONS, &definition()).await;
    plane.create(WIDGETS, &widget("c", &spec)).await;
    assert_eq!(next().await, "c \"red\"");
    plane.stop().await;
}
