//! Tests of paths and errors, and of the shipped manifests against an API server.

use serde_json::json;

use kube_test_control_plane::TestControlPlane;

use super::*;
use crate::manifest;

#[test]
fn kinds_are_read_from_discovery() {
    let list = json!({"resources": [
        {"name": "pods", "kind": "Pod", "namespaced": true},
        {"name": "pods/status", "kind": "Pod", "namespaced": false},
        {"name": "nodes", "kind": "Node", "namespaced": false},
    ]});
    let found = kinds(&list);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found["Pod"],
        Resource {
            plural: "pods".to_owned(),
            namespaced: true
        }
    );
}

#[test]
fn objects_go_to_their_namespace_or_the_default() {
    let text = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns}}\n\
                ---\n{apiVersion: v1, kind: Node, metadata: {name: b}}\n\
                ---\n{apiVersion: v1, kind: Pod, metadata: {name: c}}\n";
    let documents = manifest::parse("m", text).expect("the manifest is good");
    let paths: Vec<String> = documents
        .iter()
        .zip([("statefulsets", true), ("nodes", false), ("pods", true)])
        .map(|(document, (plural, namespaced))| {
            collection_path(
                document,
                &Resource {
                    plural: plural.to_owned(),
                    namespaced,
                },
            )
        })
        .collect();
    assert_eq!(
        paths,
        [
            "/apis/apps/v1/namespaces/ns/statefulsets",
            "/api/v1/nodes",
            "/api/v1/namespaces/default/pods"
        ]
    );
}

#[test]
fn errors_name_every_field() {
    let status: Status = serde_json::from_value(json!({
        "message": "StatefulSet.apps \"a\" is invalid: […]",
        "details": {"causes": [
            {"field": "spec.selector", "message": "Required value"},
            {"field": "spec.template", "message": "Invalid value"},
        ]},
    }))
    .expect("it is a status");
    assert_eq!(
        explain(&status),
        (
            "spec.selector".to_owned(),
            "Required value; spec.template: Invalid value".to_owned()
        )
    );
    let plain: Status = serde_json::from_value(json!({"message": "no"})).expect("it is a status");
    assert_eq!(explain(&plain), (String::new(), "no".to_owned()));
}

/// The first error of a manifest on a new server.
async fn refusal(text: &str) -> String {
    apply(text)
        .await
        .expect_err("the manifest is bad")
        .to_string()
}

async fn apply(text: &str) -> anyhow::Result<Vec<Key>> {
    apply_with_warnings(text).await.0
}

/// The sets, or the first error; and the warnings until then.
async fn apply_with_warnings(text: &str) -> (anyhow::Result<Vec<Key>>, Vec<String>) {
    let plane = TestControlPlane::builder().start().await;
    let mut applier = Applier::new(plane.client());
    let mut sets = Vec::new();
    for document in manifest::parse("m.yaml", text).expect("the manifest can be read") {
        match applier.create(&document).await {
            Ok(set) => sets.extend(set),
            Err(error) => return (Err(error), applier.take_warnings()),
        }
    }
    (Ok(sets), applier.take_warnings())
}

#[tokio::test(start_paused = true)]
async fn server_accepts_the_shipped_manifests() {
    let manifests = [
        (
            "default/web",
            include_str!("../../../../docs/examples/web.yaml"),
        ),
        (
            "default/postgresql",
            include_str!("../../../../docs/examples/postgresql.yaml"),
        ),
        (
            "default/zk",
            include_str!("../../../../docs/examples/zookeeper.yaml"),
        ),
        (
            "kafka/kafka",
            include_str!("../../../../docs/examples/kafka.yaml"),
        ),
        (
            "default/cassandra",
            include_str!("../../../../docs/examples/cassandra.yaml"),
        ),
    ];
    for (set, text) in manifests {
        let (sets, warnings) = apply_with_warnings(text).await;
        assert_eq!(warnings, [""; 0]);
        let sets = sets.expect("the manifest is good");
        assert_eq!(sets.iter().map(Key::to_string).collect::<Vec<_>>(), [set]);
    }
}

#[tokio::test(start_paused = true)]
async fn error_is_one_line_with_object_field_and_reason() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let cases = [
        (
            web.replace("apps/v1", "apps/v1beta1"),
            "apiVersion: the server has no apps/v1beta1",
        ),
        (
            web.replace("kind: StatefulSet", "kind: PetSet"),
            "kind: the server has no PetSet in apps/v1",
        ),
        (
            web.replace("      app: web\n  template", "      app: x\n  template"),
            "spec.template.metadata.labels: Invalid value: ",
        ),
        (
            web.replace("replicas: 3", "replicas: -1"),
            "spec.replicas: Invalid value: -1: ",
        ),
        (
            web.replace("replicas: 3", "replicas: many"),
            ": spec.replicas: StatefulSet in version",
        ),
        (
            web.replace("storage: 1Gi", "storage: lots"),
            ": spec.volumeClaimTemplates[0].spec.resources.requests.storage: StatefulSet in",
        ),
        (
            web.replace(
                "name: web\nspec:\n  serviceName",
                "name: Web\nspec:\n  serviceName",
            ),
            "metadata.name: ",
        ),
    ];
    for (text, expected) in cases {
        let line = refusal(&text).await;
        assert!(line.starts_with("m.yaml:16: document 2, "), "{line}");
        assert!(line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn existing_objects_are_rejected() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let line = refusal(&format!("{web}---\n{web}")).await;
    assert_eq!(
        line,
        "m.yaml:51: document 3, Service web: services \"web\" already exists"
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_warnings() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let typos = web
        .replace("  replicas: 3", "  replica: 3")
        .replace("  serviceName: web", "  serviceName: web\n  zone: {a: b}");
    let (sets, warnings) = apply_with_warnings(&typos).await;
    assert_eq!(sets.expect("unknown fields don't matter").len(), 1);
    let of = "m.yaml:16: document 2, StatefulSet web: unknown field";
    let expected = ["spec.replica", "spec.zone"].map(|field| format!("{of} {field:?}"));
    assert_eq!(warnings, expected);
}

#[tokio::test(start_paused = true)]
async fn errors_carry_warnings_and_name_the_field() {
    let web = include_str!("../../../../docs/examples/web.yaml");
    let web = web.replace("  replicas: 3", "  replica: 3");
    let apply = async |storage: &str| {
        let manifest = web.replace("storage: 1Gi", storage);
        let (refusal, warnings) = apply_with_warnings(&manifest).await;
        let refusal = refusal.expect_err("the quantity is invalid");
        (refusal.to_string(), warnings)
    };
    let (refusal, warnings) = apply("storage: 0").await;
    assert!(refusal.contains("must be greater than zero"), "{refusal}");
    let expected = "m.yaml:16: document 2, StatefulSet web: unknown field \"spec.replica\"";
    assert_eq!(warnings, [expected]);
    // A server that can't decode the object has no warnings.
    let (refusal, warnings) = apply("storage: lots").await;
    let field = ": spec.volumeClaimTemplates[0].spec.resources.requests.storage: StatefulSet in";
    assert!(refusal.contains(field), "{refusal}");
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn warnings_are_read_from_headers_in_any_form() {
    let mut headers = HeaderMap::new();
    for line in [r#"299 - "a \"b\"""#, "299 - plain text", "odd"] {
        headers.append(header::WARNING, line.parse().expect("it is a header"));
    }
    assert_eq!(warnings(&headers), ["a \"b\"", "plain text", "odd"]);
}
