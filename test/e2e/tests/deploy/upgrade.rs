//! Tests of an upgrade of the chart from one release to the next.

use super::*;

/// A version that no release has.
const NEXT: &str = "999.0.0";

#[test]
fn upgrade_replaces_only_the_image() {
    for values in ["values-self-managed.yaml", "values-managed.yaml"] {
        let chart = || Chart::shipped().with_file(values);
        let mut before = by_key(chart().render("kube-system"));
        let after = by_key(chart().with_version(NEXT).render("kube-system"));
        let of_deployment = before.keys().find(|(kind, ..)| kind == "Deployment");
        let of_deployment = of_deployment.unwrap().clone();
        let deployment = before.get_mut(&of_deployment).unwrap();
        let image = deployment.pointer_mut("/spec/template/spec/containers/0/image");
        let image = image.unwrap();
        assert_eq!(*image, format!("{NAME}:{}", env!("CARGO_PKG_VERSION")));
        *image = json!(format!("{NAME}:{NEXT}"));
        assert_eq!(before, after, "{values}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_accepts_the_upgrade_of_every_object() {
    let world = World::api_server().await;
    let space = world.namespace("unused").await;
    let namespace = "kube-system";
    let json = "application/json";
    for object in Chart::shipped().render(namespace) {
        if is_embedded(object["kind"].as_str().unwrap()) {
            let created = space
                .ask(Method::POST, &collection(&object), json, &object)
                .await;
            assert!(created.is_ok(), "{created:?}\n{object:#}");
        }
    }
    let mut count = 0;
    for object in Chart::shipped().with_version(NEXT).render(namespace) {
        if is_embedded(object["kind"].as_str().unwrap()) {
            // As Helm does, without a resource version.
            let (_, _, name) = key(&object);
            let path = format!("{}/{name}", collection(&object));
            let merge = "application/merge-patch+json";
            let updated = space.ask(Method::PATCH, &path, merge, &object).await;
            assert!(updated.is_ok(), "{updated:?}\n{object:#}");
            count += 1;
        }
    }
    assert!(count >= 9, "{count}");
}

/// Compares values with the schema: every value has a property of its type, and the other way round.
fn compare(path: &str, values: &Value, schema: &Value, definitions: &Value, out: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => &definitions[reference.trim_start_matches("#/definitions/")],
        None => schema,
    };
    let kind = match values {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::Null => "null",
    };
    if schema["type"] != kind {
        out.push(format!("{path} is of type {kind}, not {}", schema["type"]));
    }
    let (Some(values), Some(properties)) = (values.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    for (name, schema) in properties {
        match values.get(name) {
            Some(value) => compare(&format!("{path}.{name}"), value, schema, definitions, out),
            None => out.push(format!("{path}.{name} has no default")),
        }
    }
    let unknown = values.keys().filter(|name| !properties.contains_key(*name));
    out.extend(unknown.map(|name| format!("{path}.{name} is not in the schema")));
}

#[test]
fn schema_describes_every_value() {
    let folder = deploy::folder().join("helm").join(NAME);
    let schema = std::fs::read_to_string(folder.join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let differences = |values: &Value| {
        let mut out = Vec::new();
        compare("", values, &schema, &schema["definitions"], &mut out);
        out
    };
    let chart = Chart::shipped();
    // Helm adds the values that all charts share.
    assert_eq!(differences(chart.values()), [".global has no default"]);
    for file in ["values-self-managed.yaml", "values-managed.yaml"] {
        let chart = Chart::shipped().with_file(file);
        assert_eq!(
            differences(chart.values()),
            [".global has no default"],
            "{file}"
        );
    }
    let misspelt = Chart::shipped().with(json!({"replica": 3, "shadow": "yes"}));
    let expected = [
        ".global has no default",
        ".shadow is of type string, not \"boolean\"",
        ".replica is not in the schema",
    ];
    assert_eq!(differences(misspelt.values()), expected);
}
