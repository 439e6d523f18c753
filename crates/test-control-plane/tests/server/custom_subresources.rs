//! Subresources of custom resources.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

use crate::custom_resources::{WIDGETS, definition, merge, widget};
use crate::support::{Plane, exchange};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(start_paused = true)]
async fn replicas_outside_of_the_schema_are_checked_and_dropped() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut scaled = definition();
    for version in scaled["spec"]["versions"].as_array_mut().unwrap() {
        version["subresources"]["scale"] = json!({
            "specReplicasPath": ".spec.wanted", "statusReplicasPath": ".status.found",
        });
    }
    plane.create(DEFINITIONS, &scaled).await;
    plane
        .create(WIDGETS, &widget("w", &json!({"size": 1})))
        .await;
    let scale = format!("{WIDGETS}/w/scale");
    let before = plane.get(&format!("{WIDGETS}/w")).await;
    merge(&plane, &scale, &json!({"spec": {"replicas": 1}})).await;
    let after = plane.get(&format!("{WIDGETS}/w")).await;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["generation"], 2);
    let negative = json!({"spec": {"replicas": -1}}).to_string();
    let headers = [("Content-Type", "application/merge-patch+json")];
    let answer = exchange(plane.0.server(), Method::PATCH, &scale, &headers, negative).await;
    assert_eq!(answer.code, 422);
    let cause = &answer.json()["details"]["causes"][0];
    assert_eq!(cause["field"], ".spec.wanted");
    let message = "Invalid value: -1: should be a non-negative integer";
    assert_eq!(cause["message"], message);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn responses_without_a_subresource_warn_about_deprecated_versions() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut deprecated = definition();
    deprecated["spec"]["versions"][0]["deprecated"] = json!(true);
    plane.create(DEFINITIONS, &deprecated).await;
    plane
        .create(WIDGETS, &widget("w", &json!({"size": 1})))
        .await;
    let path = format!("{WIDGETS}/w/scale");
    let answer = exchange(plane.0.server(), Method::GET, &path, &[], String::new()).await;
    assert_eq!(answer.code, 404);
    let warning = "299 - \"example.com/v1 Widget is deprecated\"";
    assert_eq!(answer.header("warning"), warning);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn applied_choice_of_integer_and_text_is_validated() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut chosen = definition();
    let schema = &mut chosen["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["port"] =
        json!({"x-kubernetes-int-or-string": true});
    plane.create(DEFINITIONS, &chosen).await;
    let path = format!("{WIDGETS}/w?fieldManager=m");
    let headers = [("Content-Type", "application/apply-patch+yaml")];
    let body = widget("w", &json!({"size": 1, "port": {}})).to_string();
    let answer = exchange(plane.0.server(), Method::PATCH, &path, &headers, body).await;
    assert_eq!(answer.code, 422);
    let message = answer.json()["message"].to_string();
    let wanted = "spec.port in body must be of type integer,string";
    assert!(message.contains(wanted), "{message}");
    plane.stop().await;
}

/// Upstream can't convert the scale that an apply makes.
#[tokio::test(start_paused = true)]
async fn applied_scale_of_a_custom_resource_fails_unless_it_changes_nothing() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut scaled = definition();
    for version in scaled["spec"]["versions"].as_array_mut().unwrap() {
        version["subresources"]["scale"] = json!({
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.found",
        });
    }
    plane.create(DEFINITIONS, &scaled).await;
    plane
        .create(WIDGETS, &widget("w", &json!({"size": 1})))
        .await;
    let path = format!("{WIDGETS}/w/scale?fieldManager=m&force=true");
    let headers = [("Content-Type", "application/apply-patch+yaml")];
    let message = "failed to convert new object (default/w; autoscaling/v1, Kind=Scale) to proper \
                   version: request to convert CR to an invalid group/version: autoscaling/v1";
    for (replicas, code) in [(1, 200), (2, 500)] {
        let scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"},
            "spec": {"replicas": replicas},
        });
        let server = plane.0.server();
        let answer = exchange(server, Method::PATCH, &path, &headers, scale.to_string()).await;
        assert_eq!(answer.code, code, "{}", answer.text());
        if code == 500 {
            assert_eq!(answer.json()["message"], message);
        }
    }
    plane.stop().await;
}
