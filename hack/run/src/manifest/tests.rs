//! Tests with valid and invalid manifests.

use super::*;

fn problem(text: &str) -> String {
    parse("m.yaml", text)
        .expect_err("the manifest is bad")
        .to_string()
}

fn only(text: &str) -> Document {
    let mut documents = parse("m.yaml", text).expect("the manifest is good");
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

#[test]
fn documents_have_numbers_and_lines() {
    let text = "# web\n---\n\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n# nothing\n\
                --- # next\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: b\n  \
                namespace: ns\n";
    let documents = parse("m.yaml", text).expect("the manifest is good");
    let seen: Vec<_> = documents
        .iter()
        .map(|found| (found.place.document, found.place.line, found.kind.as_str()))
        .collect();
    assert_eq!(seen, [(1, 4, "Service"), (2, 10, "StatefulSet")]);
    assert_eq!(documents[1].namespace.as_deref(), Some("ns"));
    assert_eq!(documents[1].api_version, "apps/v1");
}

#[test]
fn lists_become_their_items_and_names_may_be_generated() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: \
                {generateName: p-}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n";
    let documents = parse("m.yaml", text).expect("the manifest is good");
    let names: Vec<_> = documents.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["p-", "s"]);
}

#[test]
fn scalars_are_parsed_as_in_kubectl() {
    let value = only(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {a: \"yes\"}}\n\
         mode: 0755\non: yes\noff: \"no\"\nbig: 9007199254740993\nhalf: 0.5\nnothing: ~\n\
         text: |\n  a\n  ---b\nfolded: >-\n  a\n  b\n8080: x\n",
    )
    .value;
    assert_eq!(value["mode"], 493);
    assert_eq!(value["off"], "no");
    assert_eq!(value["metadata"]["annotations"]["a"], "yes");
    assert_eq!(value["big"], 9_007_199_254_740_993_u64);
    assert_eq!(value["half"], 0.5);
    assert_eq!(value["nothing"], Value::Null);
    assert_eq!(value["text"], "a\n---b\n");
    assert_eq!(value["folded"], "a b");
    assert_eq!(value["8080"], "x");
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    let value = only(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nbase: &base {a: 1, b: 2}\n\
         derived:\n  <<: *base\n  b: 3\n",
    )
    .value;
    assert_eq!(value["derived"], serde_json::json!({"a": 1, "b": 3}));
}

#[test]
fn syntax_errors_name_line_and_column() {
    let text = problem("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\na: b\n  c: d\n");
    assert!(text.starts_with("m.yaml:6:"), "{text}");
    assert!(text.contains("not valid YAML: "), "{text}");
    assert!(!text.contains('\n'), "{text}");
    let twice = problem("a: 1\na: 2\n");
    assert!(twice.starts_with("m.yaml:2:1: not valid YAML: "), "{twice}");
}

#[test]
fn documents_without_required_members_are_rejected() {
    let cases = [
        (
            "kind: Pod\nmetadata: {name: a}\n",
            "m.yaml:1: document 1, Pod a: apiVersion: Required value",
        ),
        (
            "apiVersion: v1\nmetadata: {name: a}\n",
            "m.yaml:1: document 1, a: kind: Required value",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n",
            "m.yaml:1: document 1, Pod: metadata.name: Required value",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n",
            "m.yaml:1: document 1, Pod: metadata.name: expected a string",
        ),
        (
            "# a list\n\n- a\n",
            "m.yaml:3: document 1: expected an object with apiVersion, kind and metadata",
        ),
        (
            "apiVersion: v1\nkind: List\nmetadata: {name: a}\n",
            "m.yaml:1: document 1, List: items: expected a list",
        ),
        ("# nothing\n---\n", "m.yaml: holds no object"),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(text), expected);
    }
}

#[test]
fn field_errors_are_one_line() {
    let document = only("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}\n");
    assert_eq!(
        document.problem("spec.x", "too\n  long").to_string(),
        "m.yaml:1: document 1, Pod ns/a: spec.x: too long"
    );
}

#[test]
fn shipped_manifests_contain_one_set_each() {
    let manifests = [
        ("web", include_str!("../../../../docs/examples/web.yaml")),
        (
            "postgresql",
            include_str!("../../../../docs/examples/postgresql.yaml"),
        ),
        (
            "zk",
            include_str!("../../../../docs/examples/zookeeper.yaml"),
        ),
        (
            "kafka",
            include_str!("../../../../docs/examples/kafka.yaml"),
        ),
        (
            "cassandra",
            include_str!("../../../../docs/examples/cassandra.yaml"),
        ),
    ];
    for (name, text) in manifests {
        let documents = parse(name, text).expect("the manifest is good");
        let sets: Vec<_> = documents
            .iter()
            .filter(|found| found.kind == "StatefulSet")
            .map(|set| &set.name)
            .collect();
        assert_eq!(sets, [name]);
        let modes: Vec<_> = documents
            .iter()
            .filter_map(|found| found.value.pointer("/spec/template/spec/volumes"))
            .flat_map(|volumes| volumes.as_array().into_iter().flatten())
            .filter_map(|volume| volume.pointer("/configMap/defaultMode"))
            .collect();
        assert!(
            modes.iter().all(|mode| **mode == 0o755 || **mode == 0o555),
            "{name}: {modes:?}"
        );
    }
}
