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

/// Returns the reasons in the conditions of a definition.
fn reasons(definition: &Value) -> Vec<&str> {
    let conditions = definition["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten();
    conditions.filter_map(|it| it["reason"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn definition_without_names_is_deleted_in_steps() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.create(DEFINITIONS, &definition()).await;
    let mut second = definition();
    second["metadata"] = json!({"name": "gadgets.example.com", "finalizers": ["example.com/hold"]});
    second["spec"]["names"]["plural"] = json!("gadgets");
    plane.create(DEFINITIONS, &second).await;
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let version = plane.get(&path).await["metadata"]["resourceVersion"].clone();
    plane.call(Method::DELETE, &path, &json!({})).await;
    plane.call(Method::DELETE, DEFINITION, &json!({})).await;

    let version = version.as_str().unwrap();
    let watch = format!("{DEFINITIONS}?watch=1&timeoutSeconds=1&resourceVersion={version}");
    let answer = exchange(plane.0.server(), Method::GET, &watch, &[], "").await;
    let text = answer.text();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let own = events
        .iter()
        .filter(|event| event["object"]["metadata"]["name"] == "gadgets.example.com");
    let found: Vec<Vec<&str>> = own.map(|event| reasons(&event["object"])).collect();
    assert_eq!(
        found,
        [
            ["ListKindConflict", "NotAccepted", "InstanceDeletionPending"],
            [
                "ListKindConflict",
                "NotAccepted",
                "InstanceDeletionInProgress"
            ],
            ["ListKindConflict", "NotAccepted", "NeverEstablished"],
            ["NoConflicts", "Installing", "NeverEstablished"],
            ["NoConflicts", "InitialNamesAccepted", "NeverEstablished"],
        ]
    );

    // The definition waits for its finalizer and serves its resources meanwhile.
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    plane
        .create(gadgets, &widget("a", &json!({"size": 1})))
        .await;
    merge(&plane, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(plane.code(&format!("{gadgets}/a")).await, 200);
    merge(&plane, &path, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(plane.code(&path).await, 404);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn definition_with_a_wrong_bundle_is_not_established() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut converted = definition();
    converted["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": "YWJj"},
    }});
    plane.create(DEFINITIONS, &converted).await;
    let found = plane.get(DEFINITION).await;
    assert_eq!(reasons(&found), ["NoConflicts", "InvalidCABundle"]);
    let (code, answer) = plane.call(Method::GET, WIDGETS, &Value::Null).await;
    assert_eq!(
        (code, &answer["message"]),
        (
            500,
            &json!("Internal error occurred: error resolving resource")
        )
    );
    for unknown in ["", "/v1/widgets/a", "/v1", "/v2/namespaces/default/widgets"] {
        let path = format!("/apis/example.com{unknown}");
        assert_eq!(plane.code(&path).await, 404, "{path}");
    }
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    merge(&plane, DEFINITION, &none).await;
    let found = plane.get(DEFINITION).await;
    assert_eq!(reasons(&found), ["NoConflicts", "InitialNamesAccepted"]);
    let mut changed = found;
    changed["spec"]["conversion"] = converted["spec"]["conversion"].clone();
    let causes = plane.refused(Method::PUT, DEFINITION, &changed).await;
    let detail = "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"YWJj\": unable to \
                  load root certificates: unable to parse bytes as PEM block";
    assert_eq!(causes, [detail]);
    plane.stop().await;
}
