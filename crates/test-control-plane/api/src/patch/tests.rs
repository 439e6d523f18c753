//! Tests of patches: one table per patch type.

use serde_json::{Value, json};

use super::*;
use crate::kinds;

fn apply(content_type: &str, kind: (&str, &str), old: Value, patch: &Value) -> ApiResult<Value> {
    let kind = kinds::by_kind(kind.0, kind.1).unwrap();
    let patch = Patch::parse(
        kind,
        content_type,
        patch.to_string().as_bytes(),
        FieldValidation::Warn,
    )?;
    let draft = Draft::from_value(kind, old);
    Ok(patch.apply(kind, &draft)?.draft.to_value())
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

fn strategic(old: &Value, patch: &Value) -> Value {
    let content_type = "application/strategic-merge-patch+json";
    let new = apply(
        content_type,
        ("v1", "Pod"),
        pod(old),
        &json!({"spec": patch}),
    );
    new.unwrap()["spec"].clone()
}

#[test]
fn keyed_lists_merge_by_key_with_new_items_first() {
    let old = json!({"containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
        {"name": "b", "image": "b:1"},
    ]});
    let patch = json!({"containers": [
        {"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "$patch": "delete"}]},
        {"name": "c", "image": "c:1"},
    ]});
    let expected = json!({"containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "Y", "value": "2"}]},
        {"name": "c", "image": "c:1"},
        {"name": "b", "image": "b:1"},
    ]});
    assert_eq!(strategic(&old, &patch), expected);
}

#[test]
fn element_order_is_set_even_without_a_list() {
    let old = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let order = json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]);
    let patch = json!({"$setElementOrder/containers": order});
    assert_eq!(strategic(&old, &patch)["containers"], order);
    let patch = json!({
        "$setElementOrder/containers": order,
        "containers": [{"name": "c", "image": "c:2"}],
    });
    let expected = json!([{"name": "c", "image": "c:2"}, {"name": "a"}, {"name": "b"}]);
    assert_eq!(strategic(&old, &patch)["containers"], expected);
}

#[test]
fn retain_keys_drops_the_rest() {
    let old = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
    let patch = json!({"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}},
    ]});
    let expected = json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]});
    assert_eq!(strategic(&old, &patch), expected);
}

#[test]
fn replace_and_delete_work_on_maps_and_lists() {
    let old = json!({"nodeSelector": {"a": "1"}, "containers": [{"name": "a"}]});
    let patch = json!({"nodeSelector": {"$patch": "replace", "b": "2"}});
    assert_eq!(strategic(&old, &patch)["nodeSelector"], json!({"b": "2"}));
    let patch = json!({"containers": [{"$patch": "replace"}, {"name": "z"}]});
    assert_eq!(
        strategic(&old, &patch)["containers"],
        json!([{"name": "z"}])
    );
    let patch = json!({"nodeSelector": null});
    assert!(strategic(&old, &patch).get("nodeSelector").is_none());
}

#[test]
fn sets_merge_and_lose_values() {
    let mut old = pod(&json!({}));
    old["metadata"]["finalizers"] = json!(["a.io/a", "b.io/b"]);
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a.io/a"],
        "finalizers": ["c.io/c"],
    }});
    let content_type = "application/strategic-merge-patch+json";
    let new = apply(content_type, ("v1", "Pod"), old, &patch).unwrap();
    assert_eq!(new["metadata"]["finalizers"], json!(["c.io/c", "b.io/b"]));
}

#[test]
fn atomic_lists_are_replaced() {
    let old = json!({"tolerations": [{"key": "a"}]});
    let patch = json!({"tolerations": [{"key": "b"}]});
    assert_eq!(strategic(&old, &patch), patch);
}

#[test]
fn merge_patches_delete_with_null() {
    let new = apply(
        "application/merge-patch+json",
        ("v1", "Pod"),
        pod(&json!({"a": 1, "b": [1]})),
        &json!({"spec": {"a": null, "b": [2]}}),
    );
    assert_eq!(new.unwrap()["spec"], json!({"b": [2]}));
}

#[test]
fn json_patches_fail_as_a_whole() {
    let run = |patch: Value| {
        let old = pod(&json!({"replicas": 1}));
        apply("application/json-patch+json", ("v1", "Pod"), old, &patch)
    };
    let new = run(json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]));
    assert_eq!(new.unwrap()["spec"]["replicas"], json!(2));
    for (patch, code) in [
        (
            json!([{"op": "test", "path": "/spec/replicas", "value": 9}]),
            422,
        ),
        (json!([{"op": "remove", "path": "/spec/nothing"}]), 422),
        (json!([{"op": "frobnicate", "path": "/spec"}]), 422),
        (json!({"op": "x"}), 400),
    ] {
        assert_eq!(run(patch).unwrap_err().code, code);
    }
}

#[test]
fn revision_data_is_kept_verbatim_unless_decoded() {
    let kind = kinds::by_kind("apps/v1", "ControllerRevision").unwrap();
    let body = br#"{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"},
        "revision":1,"data":{"z":1,"a":{"y":2}}}"#;
    let draft = Draft::parse(kind, body).unwrap();
    assert_eq!(draft.data.as_deref(), Some(r#"{"z":1,"a":{"y":2}}"#));
    for (content_type, patch, data) in [
        (
            "application/merge-patch+json",
            r#"{"revision":2}"#,
            r#"{"z":1,"a":{"y":2}}"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"replace","path":"/revision","value":2}]"#,
            r#"{"z":1,"a":{"y":2}}"#,
        ),
        (
            "application/strategic-merge-patch+json",
            r#"{"revision":2}"#,
            r#"{"a":{"y":2},"z":1}"#,
        ),
    ] {
        let patch =
            Patch::parse(kind, content_type, patch.as_bytes(), FieldValidation::Warn).unwrap();
        let new = patch.apply(kind, &draft).unwrap().draft;
        assert_eq!(new.value["revision"], json!(2), "{content_type}");
        assert_eq!(new.data.as_deref(), Some(data), "{content_type}");
    }
}

#[test]
fn other_content_types_are_rejected() {
    assert_eq!(
        Patch::parse(
            kinds::by_kind("v1", "Pod").unwrap(),
            "application/json",
            b"{}",
            FieldValidation::Warn
        )
        .unwrap_err()
        .code,
        415
    );
}

#[test]
fn merge_patches_drop_null_members_of_list_elements() {
    let old = pod(&json!({"tolerations": [{"key": "a"}], "nodeName": "n"}));
    let patch = json!({"spec": {
        "tolerations": [{"key": null, "operator": "Exists", "a": [{"b": null}, null]}],
        "nodeName": null,
    }});
    let new = apply("application/merge-patch+json", ("v1", "Pod"), old, &patch);
    let tolerations = json!([{"operator": "Exists", "a": [{}, null]}]);
    assert_eq!(new.unwrap()["spec"], json!({"tolerations": tolerations}));
}
