//! Values of custom resources as clients write them: whole numbers as floats, and nulls.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::custom_resources::{DEFINITIONS, WIDGETS, definition, merge, widget};
use crate::support::{Plane, exchange};

/// Starts a control plane whose widgets have these fields in their spec and their status.
async fn plane(members: &Value) -> Plane {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let mut widgets = definition();
    for version in widgets["spec"]["versions"].as_array_mut().unwrap() {
        let part = json!({"type": "object", "properties": members});
        version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": part, "status": part});
        version["selectableFields"] = json!([]);
    }
    plane.create(DEFINITIONS, &widgets).await;
    plane
}

/// Updates an object to this spec.
async fn put(plane: &Plane, path: &str, spec: &Value) -> Value {
    let mut object = plane.get(path).await;
    object["spec"] = spec.clone();
    let (code, put) = plane.call(Method::PUT, path, &object).await;
    assert_eq!(code, 200, "{put}");
    put
}

/// Upstream compares the decoded objects, in which a float is no integer, and stores texts, in which
/// both look the same.
#[tokio::test(start_paused = true)]
async fn whole_floats_are_stored_as_integers_and_count_as_changes() {
    let number = json!({"type": "integer"});
    let plane = plane(&json!({"size": number, "any": {"type": "number"}})).await;
    let path = &format!("{WIDGETS}/a");
    let (float, whole) = (
        json!({"size": 3.0, "any": 2.5}),
        json!({"size": 3, "any": 2.5}),
    );
    let made = plane.create(WIDGETS, &widget("a", &float)).await;
    assert_eq!(made["spec"], whole);

    let again = put(&plane, path, &float).await;
    assert_eq!(again["metadata"]["generation"], 2);
    assert_eq!(again["spec"], made["spec"]);
    assert_eq!(
        again["metadata"]["managedFields"],
        made["metadata"]["managedFields"]
    );
    assert_eq!(put(&plane, path, &whole).await, again);
    merge(&plane, path, &json!({"spec": {"size": 3.0}})).await;
    assert_eq!(plane.get(path).await["metadata"]["generation"], 3);

    // The status has no generation, and its text doesn't change.
    let status = &format!("{path}/status");
    merge(&plane, status, &json!({"status": {"size": 1}})).await;
    let stored = plane.get(path).await;
    merge(&plane, status, &json!({"status": {"size": 1.0}})).await;
    assert_eq!(plane.get(path).await, stored);
    plane.stop().await;
}

/// YAML has integers for them, and so have apply configurations.
#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn rules_cannot_read_whole_floats_as_integers() {
    let ruled =
        |of: &str, rule: &str| json!({"type": of, "x-kubernetes-validations": [{"rule": rule}]});
    let mut list = ruled("array", "self.all(n, n < 4)");
    list["items"] = json!({"type": "integer"});
    list["maxItems"] = json!(9);
    let mut either = ruled("", "self == 3 || self == 'three'");
    either.as_object_mut().unwrap().remove("type");
    either["x-kubernetes-int-or-string"] = json!(true);
    let plane = plane(&json!({
        "size": ruled("integer", "self > 1"),
        "any": ruled("number", "self > 1.0"),
        "list": list,
        "either": either,
    }))
    .await;
    let is_no_int = "invalid data, expected int, got float64 evaluating rule";
    for (spec, cause) in [
        (
            json!({"size": 3.0}),
            format!("spec.size: Invalid value: \"integer\": {is_no_int}: self > 1"),
        ),
        (
            json!({"list": [1, 3.0]}),
            format!("spec.list: Invalid value: \"array\": {is_no_int}: self.all(n, n < 4)"),
        ),
        (
            json!({"either": 3.0}),
            "spec.either: Invalid value: \"\": invalid data, expected XIntOrString value to be either \
             a string or integer evaluating rule: self == 3 || self == 'three'"
                .to_owned(),
        ),
    ] {
        let sent = widget("a", &spec);
        let causes = plane.refused(Method::POST, WIDGETS, &sent).await;
        assert_eq!(causes, [cause], "{spec}");
    }
    let floats = json!({"any": 3.0});
    plane.create(WIDGETS, &widget("a", &floats)).await;
    let body = r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "NAME"},
        "spec": {"size": 3.0, "list": [1, 3.0], "either": 3.0}}"#;
    let server = plane.0.server();
    for (method, path, name, format) in [
        (Method::POST, WIDGETS.to_owned(), "b", "application/yaml"),
        (
            Method::PATCH,
            format!("{WIDGETS}/c?fieldManager=m"),
            "c",
            "application/apply-patch+yaml",
        ),
    ] {
        let headers = [("Content-Type", format)];
        let body = body.replace("NAME", name);
        let answer = exchange(server, method, &path, &headers, body).await;
        assert_eq!(answer.code, 201, "{}", answer.json());
    }
    plane.stop().await;
}

/// Only the decoding of other requests drops them.
#[tokio::test(start_paused = true)]
async fn applied_nulls_are_validated() {
    let plane = plane(&json!({
        "size": {"type": "integer"},
        "level": {"type": "integer", "default": 2},
        "color": {"type": "string", "nullable": true},
    }))
    .await;
    let server = plane.0.server();
    let apply = async |name: &str, spec: &Value| {
        let path = format!("{WIDGETS}/{name}?fieldManager=m");
        let headers = [("Content-Type", "application/apply-patch+yaml")];
        let body = widget(name, spec).to_string();
        exchange(server, Method::PATCH, &path, &headers, body).await
    };
    let allowed = json!({"level": null, "color": null});
    let answer = apply("a", &allowed).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"], json!({"level": 2, "color": null}));
    let refused = json!({"size": null});
    for name in ["a", "b"] {
        let answer = apply(name, &refused).await;
        assert_eq!(answer.code, 422, "{}", answer.text());
        let wanted = "spec.size: Invalid value: \"null\": spec.size in body must be of type integer: \
                      \"null\"";
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.ends_with(wanted), "{message}");
    }
    let made = plane.create(WIDGETS, &widget("b", &refused)).await;
    assert_eq!(made["spec"], json!({"level": 2}));
    plane.stop().await;
}
