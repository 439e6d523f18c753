//! Definitions of the size that operators publish: each contains the whole schema of pods.

use std::fs;
use std::path::Path;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Map, Value, json};

use crate::support::missing;

/// Fields that the published schemas of built-in types have, and definitions don't.
const LEFT_OUT: [&str; 5] = [
    "default",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// Returns a published schema as a definition contains it: without references.
fn structural(schema: &Value, all: &Value) -> Value {
    let Some(members) = schema.as_object() else {
        return schema.clone();
    };
    let reference = schema
        .get("$ref")
        .or_else(|| schema.pointer("/allOf/0/$ref"));
    if let Some(reference) = reference.and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap();
        let mut found = structural(&all[name], all);
        for (name, value) in members {
            let is_own = name.starts_with("x-kubernetes-list") || name == "description";
            if is_own {
                found[name] = value.clone();
            }
        }
        return found;
    }
    if members.contains_key("oneOf") {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        return json!({"anyOf": types, "x-kubernetes-int-or-string": true});
    }
    let mut own = members.clone();
    own.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = own.get_mut(name) {
            *inner = structural(inner, all);
        }
    }
    let properties = own.get_mut("properties").and_then(Value::as_object_mut);
    for inner in properties.into_iter().flat_map(Map::values_mut) {
        *inner = structural(inner, all);
    }
    let keys = own.get("x-kubernetes-list-map-keys").cloned();
    for key in keys.iter().filter_map(Value::as_array).flatten() {
        let items = own["items"].as_object_mut().unwrap();
        let required = items.get("required").and_then(Value::as_array);
        if !required.is_some_and(|required| required.contains(key)) {
            let default = if key == "protocol" { "TCP" } else { "" };
            items["properties"][key.as_str().unwrap()]["default"] = json!(default);
        }
    }
    own.into()
}

/// Returns a template with fields of all forms: quantities, ports by name, lists with keys.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "x"}, "annotations": {"a.example/b": "c"}},
        "spec": {
            "serviceAccountName": "x",
            "containers": [{
                "name": "main",
                "image": "registry.example/x:1",
                "args": ["--verbose"],
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 1}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "zone",
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}],
                },
            }]}},
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 30}],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            }],
            "volumes": [
                {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "config", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
            ],
        },
    })
}

/// Returns the documents of an operator: its definition, perhaps others, and an example.
fn documents(file: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/operators");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let parts = text.split("\n---\n").map(serde_saphyr::from_str);
    parts.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn definitions_with_the_schema_of_pods_are_served() {
    let plane = TestControlPlane::builder().start().await;
    let server = plane.server();
    let (_, document) = server
        .call_json(Method::GET, "/openapi/v3/api/v1", "test", &Value::Null)
        .await;
    let schemas = &document["components"]["schemas"];
    let of_pods = structural(&schemas["io.k8s.api.core.v1.PodTemplateSpec"], schemas);
    for (file, path) in [
        ("certificates.yaml", "certs.example.com/v1", "certificates"),
        ("monitors.yaml", "monitoring.example.com/v1", "podmonitors"),
        (
            "databases.yaml",
            "databases.example.com/v1",
            "databaseclusters",
        ),
    ]
    .map(|(file, group, plural)| (file, format!("/apis/{group}/namespaces/default/{plural}")))
    {
        let mut documents = documents(file);
        let mut example = documents.pop().unwrap();
        for mut definition in documents {
            let versions = definition["spec"]["versions"].as_array_mut().unwrap();
            let properties = "/schema/openAPIV3Schema/properties/spec/properties";
            for version in versions {
                version.pointer_mut(properties).unwrap()["template"] = of_pods.clone();
            }
            assert!(definition.to_string().len() > 300_000, "{file}");
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let (code, answer) = server
                .call_json(Method::POST, definitions, "test", &definition)
                .await;
            assert_eq!(code, 201, "{file}: {}", answer["message"]);
        }
        example["spec"]["template"] = template();
        let (code, stored) = server
            .call_json(Method::POST, &path, "test", &example)
            .await;
        assert_eq!(code, 201, "{file}: {}", stored["message"]);
        assert_eq!(missing(&example, &stored, ""), [""; 0]);
        let item = format!("{path}/example");
        let (code, again) = server.call_json(Method::PUT, &item, "test", &stored).await;
        assert_eq!((code, &again), (200, &stored));
        let mut wrong = stored;
        wrong["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] =
            json!("a");
        let (code, answer) = server.call_json(Method::PUT, &item, "test", &wrong).await;
        let field = "spec.template.spec.containers[0].ports[0].containerPort";
        assert_eq!(
            (code, &answer["details"]["causes"][0]["field"]),
            (422, &json!(field))
        );
    }
    plane.stop().await;
}
