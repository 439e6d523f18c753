//! Malformed bodies, with upstream's response to each.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Plane, exchange, raw};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const YAML: &str = "application/yaml";

/// Returns the code and the message of the response to a POST.
async fn post(plane: &Plane, content_type: &str, body: &str) -> (u16, String) {
    let server = plane.0.server();
    let (code, text) = raw(server, Method::POST, MAPS, content_type, body.to_owned()).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    (
        code,
        answer["message"].as_str().unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn invalid_yaml_is_reported_in_one_line() {
    let plane = Plane::started().await;
    for (body, why) in [
        (
            "a: b: c\n",
            "yaml: mapping values are not allowed in this context (613a20623a20630a)",
        ),
        (
            "a: b\n\tc: d\n",
            "yaml: line 2: found a tab character that violates indentation",
        ),
        (
            "kind: [ConfigMap\n",
            "yaml: line 1: did not find expected ',' or ']'",
        ),
    ] {
        let (code, message) = post(&plane, YAML, body).await;
        assert_eq!(code, 400);
        let start = "the object provided is unrecognized (must be of type ConfigMap): ";
        assert!(message.starts_with(&format!("{start}{why}")), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn duplicate_yaml_keys_are_reported() {
    let plane = Plane::started().await;
    let body = "metadata: {name: m}\ndata:\n  a: first\n  a: last\n";
    let path = format!("{MAPS}?fieldValidation=Strict");
    let headers = [("Content-Type", YAML)];
    let answer = exchange(plane.0.server(), Method::POST, &path, &headers, body).await;
    assert_eq!(answer.code, 400);
    assert_eq!(
        answer.json()["message"],
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         yaml: unmarshal errors:\n  line 4: key \"a\" already set in map"
    );
    let answer = exchange(plane.0.server(), Method::POST, MAPS, &headers, body).await;
    assert_eq!(
        (answer.code, answer.json()["data"]["a"].as_str()),
        (201, Some("last"))
    );
    assert!(
        answer
            .header("warning")
            .contains("key \\\"a\\\" already set in map")
    );
    plane.stop().await;
}

#[tokio::test]
async fn yaml_numbers_follow_yaml_1_1() {
    let plane = Plane::started().await;
    let body = "metadata: {name: p}\nspec:\n  terminationGracePeriodSeconds: 010\n  \
                containers: [{name: c, image: i, ports: [{containerPort: 80.0}]}]\n";
    let headers = [("Content-Type", YAML)];
    let answer = exchange(plane.0.server(), Method::POST, PODS, &headers, body).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let spec = &answer.json()["spec"];
    assert_eq!(spec["terminationGracePeriodSeconds"], 8);
    assert_eq!(spec["containers"][0]["ports"][0]["containerPort"], 80);
    plane.stop().await;
}

#[tokio::test]
async fn strict_merge_patch_error_prints_the_object_as_go() {
    let plane = Plane::started().await;
    let map = json!({"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"k": "v"}});
    plane.create(MAPS, &map).await;
    let path = format!("{MAPS}/m?fieldValidation=Strict");
    for (content_type, body) in [
        ("application/merge-patch+json", r#"{"dat":{}}"#),
        (
            "application/json-patch+json",
            r#"[{"op":"add","path":"/dat","value":{}}]"#,
        ),
    ] {
        let headers = [("Content-Type", content_type)];
        let answer = exchange(plane.0.server(), Method::PATCH, &path, &headers, body).await;
        assert_eq!(answer.code, 422);
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        let shown = "\"{\\\"apiVersion\\\":\\\"v1\\\",\\\"dat\\\":{},\\\"data\\\":{\\\"k\\\":\\\"v\\\"},\
                     \\\"kind\\\":\\\"ConfigMap\\\",\\\"metadata\\\":{\\\"name\\\":\\\"m\\\",\
                     \\\"namespace\\\":\\\"default\\\",\\\"uid\\\":";
        assert!(message.contains(shown), "{message}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn manager_names_from_clients_are_validated() {
    let plane = Plane::started().await;
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}})
    };
    let map = |manager: &str| json!({"metadata": {"name": "m", "managedFields": [entry(manager)]}, "data": {"k": "v"}});
    plane.create(MAPS, &map("me")).await;
    let path = format!("{MAPS}/m");
    let (code, answer) = plane.call(Method::PUT, &path, &map(&"x".repeat(129))).await;
    assert_eq!(code, 422);
    let cause = &answer["details"]["causes"][0];
    assert_eq!(cause["field"], "metadata.managedFields[0].manager");
    assert_eq!(cause["reason"], "FieldValueTooLong");
    plane.stop().await;
}

#[tokio::test]
async fn invalid_utf8_bytes_are_replaced_one_by_one() {
    let plane = Plane::started().await;
    let body = b"{\"metadata\":{\"name\":\"odd\"},\"data\":{\"k\":\"a\xff\xe2\x82b\"}}";
    let headers = [("Content-Type", "application/json")];
    let server = plane.0.server();
    let answer = exchange(server, Method::POST, MAPS, &headers, body.to_vec()).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["data"]["k"], "a\u{fffd}\u{fffd}\u{fffd}b");
    let patch = b"{\"data\":{\"k\":\"\xc0\"}}";
    let headers = [("Content-Type", "application/merge-patch+json")];
    let path = format!("{MAPS}/odd");
    let answer = exchange(server, Method::PATCH, &path, &headers, patch.to_vec()).await;
    assert_eq!(
        (answer.code, &answer.json()["data"]["k"]),
        (200, &json!("\u{fffd}"))
    );
    // So are they in messages about verbatim data.
    let revision = b"{\"metadata\":{\"name\":\"odd\"},\"revision\":1,\"data\":\"\xe2\x82\"}";
    let headers = [("Content-Type", "application/json")];
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let answer = exchange(server, Method::POST, path, &headers, revision.to_vec()).await;
    let message = answer.json()["message"].clone();
    assert_eq!(
        (answer.code, message.as_str().unwrap_or_default()),
        (
            422,
            "ControllerRevision.apps \"odd\" is invalid: data: Invalid value: \
             \"\u{fffd}\u{fffd}\": data must be a valid JSON object"
        )
    );
    // Outside of a string they are an error like any other.
    let headers = [("Content-Type", "application/json")];
    let answer = exchange(server, Method::POST, MAPS, &headers, b"{\xff}".to_vec()).await;
    assert_eq!(answer.code, 400);
    plane.stop().await;
}

/// Each of upstream's servers knows only the kinds of its own groups.
#[tokio::test]
async fn kinds_of_other_servers_are_not_registered() {
    let plane = Plane::started().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let unknown = |kind: &str, version: &str, scheme: &str| {
        format!("no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}")
    };
    let definition = "CustomResourceDefinition";
    let extensions = "apiextensions.k8s.io/v1";
    for (path, version, kind, why) in [
        (
            definitions,
            "apps/v1",
            "Deployment",
            unknown("Deployment", "apps/v1", "pkg/apiserver/apiserver.go:55"),
        ),
        (
            services,
            "apps/v1",
            "Deployment",
            unknown("Deployment", "apps/v1", "pkg/apiserver/scheme/scheme.go:28"),
        ),
        (
            deployments,
            extensions,
            definition,
            unknown(definition, extensions, "pkg/api/legacyscheme/scheme.go:30"),
        ),
        (
            deployments,
            "apps/v1",
            "StatefulSet",
            "converting (v1.StatefulSet) to (apps.Deployment): unknown conversion".to_owned(),
        ),
    ] {
        let body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        let (code, status) = plane.call(Method::POST, path, &body).await;
        assert_eq!(code, 400, "{status}");
        let message = status["message"].as_str().unwrap();
        assert!(message.ends_with(&format!(": {why}")), "{message}");
    }
    plane.stop().await;
}
