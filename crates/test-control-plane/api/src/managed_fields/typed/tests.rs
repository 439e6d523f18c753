//! Tests of typed operations on pods and config maps.

use serde_json::{Value, json};

use super::types::CustomType;
use super::*;
use crate::custom::Schema;
use crate::kinds;
use crate::managed_fields::fields_v1::{decode, encode};
use crate::managed_fields::set::Set;
use crate::settings::EmulatedVersion;

fn pods() -> TypeRef<'static> {
    TypeRef::of_kind(kinds::by_resource("", "v1", "pods").unwrap())
}

fn config_maps() -> TypeRef<'static> {
    TypeRef::of_kind(kinds::by_resource("", "v1", "configmaps").unwrap())
}

fn set(fields: &Value) -> Set {
    decode(fields).unwrap()
}

fn containers(containers: &Value) -> Value {
    json!({"spec": {"containers": containers}})
}

#[test]
fn leaves_entries_and_elements_are_fields() {
    let pod = json!({
        "metadata": {
            "labels": {"a": "b"},
            "finalizers": ["x.io/f"],
            "ownerReferences": [{"uid": "u", "name": "n"}],
        },
        "spec": {
            "nodeSelector": {"a": "b"},
            "securityContext": {},
            "tolerations": [{"key": "k"}],
            "containers": [{
                "name": "c",
                "args": ["x"],
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}],
            }],
        },
    });
    let fields = json!({
        "f:metadata": {
            "f:labels": {"f:a": {}},
            "f:finalizers": {"v:\"x.io/f\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
        },
        "f:spec": {
            "f:nodeSelector": {},
            "f:securityContext": {},
            "f:tolerations": {},
            "f:containers": {"k:{\"name\":\"c\"}": {
                ".": {},
                "f:name": {},
                "f:args": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:containerPort": {},
                }},
                "f:resources": {"f:limits": {"f:cpu": {}}},
                "f:env": {"k:{\"name\":\"A\"}": {
                    ".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}},
                }},
            }},
        },
    });
    assert_eq!(encode(&field_set(pods(), &pod)), fields);
}

#[test]
fn duplicate_elements_have_no_parts() {
    let pod = containers(&json!([{"name": "c", "image": "a"}, {"name": "c", "image": "b"}]));
    let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {}}}});
    assert_eq!(encode(&field_set(pods(), &pod)), fields);
}

#[test]
fn missing_key_defaults_to_zero() {
    let pod = containers(&json!([{"image": "a"}]));
    let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"\"}": {
        ".": {}, "f:image": {},
    }}}});
    assert_eq!(encode(&field_set(pods(), &pod)), fields);
}

#[test]
fn differences_are_added_modified_or_removed() {
    let before = json!({
        "metadata": {"labels": {"a": "1", "b": "1"}},
        "spec": {"containers": [{"name": "c", "image": "a", "args": ["x"]}], "nodeName": "n"},
    });
    let after = json!({
        "metadata": {"labels": {"a": "2", "b": "1"}, "annotations": {"x": "y"}},
        "spec": {"containers": [
            {"name": "c", "image": "a", "args": ["y"]},
            {"name": "d", "image": "a", "securityContext": {"runAsUser": 1}},
        ]},
    });
    let comparison = compare(pods(), &before, &after);
    let added = json!({
        "f:metadata": {"f:annotations": {".": {}, "f:x": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"d\"}": {
            ".": {}, "f:name": {}, "f:image": {},
            "f:securityContext": {".": {}, "f:runAsUser": {}},
        }}},
    });
    let modified = json!({
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:args": {}}}},
    });
    assert_eq!(encode(&comparison.added), added);
    assert_eq!(encode(&comparison.modified), modified);
    assert_eq!(
        encode(&comparison.removed),
        json!({"f:spec": {"f:nodeName": {}}})
    );
    assert_eq!(compare(pods(), &after, &after), Comparison::default());
}

#[test]
fn elements_change_as_a_whole_when_duplicated() {
    let one = containers(&json!([{"name": "c", "image": "a"}]));
    let two = containers(&json!([{"name": "c", "image": "a"}, {"name": "c"}]));
    let element = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {}}}});
    let parts = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
        ".": {}, "f:name": {}, "f:image": {},
    }}}});
    let comparison = compare(pods(), &one, &two);
    assert_eq!(encode(&comparison.added), element);
    assert_eq!(encode(&comparison.removed), parts);
    let comparison = compare(pods(), &two, &one);
    assert_eq!(encode(&comparison.added), parts);
    assert_eq!(encode(&comparison.removed), element);
    let other = containers(&json!([{"name": "c", "image": "b"}, {"name": "c"}]));
    assert_eq!(encode(&compare(pods(), &two, &other).modified), element);
}

#[test]
fn members_outside_the_schema_are_atomic() {
    let (before, after) = (json!({"new": {"a": 1}}), json!({"new": {"a": 2}}));
    let comparison = compare(config_maps(), &before, &after);
    assert_eq!(encode(&comparison.modified), json!({"f:new": {}}));
    assert_eq!(
        encode(&field_set(config_maps(), &after)),
        json!({"f:new": {}})
    );
}

#[test]
fn merge_matches_list_elements_by_key() {
    let live = json!({
        "metadata": {"labels": {"a": "1", "b": "1"}, "finalizers": ["x", "y"]},
        "spec": {
            "tolerations": [{"key": "a"}],
            "containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}],
        },
    });
    let config = json!({
        "metadata": {"labels": {"b": "2", "c": "2"}, "finalizers": ["z"]},
        "spec": {
            "tolerations": [{"key": "b"}],
            "containers": [{"name": "c", "image": "2"}, {"name": "b", "args": ["x"]}],
        },
    });
    let merged = json!({
        "metadata": {"labels": {"a": "1", "b": "2", "c": "2"}, "finalizers": ["x", "y", "z"]},
        "spec": {
            "tolerations": [{"key": "b"}],
            "containers": [
                {"name": "a", "image": "1"},
                {"name": "c", "image": "2"},
                {"name": "b", "image": "1", "args": ["x"]},
            ],
        },
    });
    assert_eq!(merge(pods(), &live, &config), merged);
    assert_eq!(merge(pods(), &live, &json!({})), live);
}

#[test]
fn merged_lists_follow_the_order_of_the_configuration() {
    let list = |names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        containers(&json!(items))
    };
    for (live, config, merged) in [
        (
            ["a", "b", "c"].as_slice(),
            ["c", "a"].as_slice(),
            ["b", "c", "a"].as_slice(),
        ),
        (&["a", "b"], &["x", "a", "y", "b"], &["x", "a", "y", "b"]),
        (&["a", "b", "c"], &["a", "x", "c"], &["a", "b", "x", "c"]),
        (&["a"], &["b"], &["a", "b"]),
        (&[], &["a"], &["a"]),
        (&["a", "a", "b"], &["b"], &["a", "a", "b"]),
        (&["a", "a"], &["a"], &["a"]),
    ] {
        assert_eq!(
            merge(pods(), &list(live), &list(config)),
            list(merged),
            "{live:?} {config:?}"
        );
    }
}

#[test]
fn missing_and_null_differ() {
    let live = json!({"data": {"a": "1"}});
    let merged = merge(config_maps(), &live, &json!({"data": {}, "binaryData": {}}));
    assert_eq!(merged, json!({"data": {"a": "1"}, "binaryData": {}}));
    let merged = merge(config_maps(), &live, &json!({"data": {"a": null}}));
    assert_eq!(merged, json!({"data": {"a": null}}));
}

#[test]
fn remove_drops_fields() {
    let pod = json!({
        "metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]},
        "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
    });
    let fields = set(&json!({
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"y\"": {}}},
        "f:spec": {"f:containers": {
            "k:{\"name\":\"a\"}": {"f:image": {}},
            "k:{\"name\":\"b\"}": {".": {}, "f:name": {}},
        }},
    }));
    let left = json!({
        "metadata": {"labels": {}, "finalizers": ["x"]},
        "spec": {"containers": [{"name": "a"}]},
    });
    assert_eq!(remove(pods(), &pod, &fields), left);
    assert_eq!(remove(pods(), &pod, &Set::EMPTY), pod);
}

#[test]
fn named_members_with_children_become_fields() {
    let fields = set(&json!({
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}},
    }));
    let named = json!({
        "f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}},
        "f:spec": {".": {}, "f:containers": {".": {}, "k:{\"name\":\"a\"}": {"f:image": {}}}},
    });
    assert_eq!(encode(&with_named_fields(&fields, pods())), named);
}

#[test]
fn reconcile_replaces_children_of_atomic_fields() {
    let fields = set(&json!({
        "f:spec": {
            "f:nodeSelector": {".": {}, "f:a": {}},
            "f:tolerations": {"i:0": {}},
            "f:containers": {"k:{\"name\":\"a\"}": {"f:args": {"i:0": {}}, "f:new": {"f:a": {}}}},
        },
    }));
    let reconciled = json!({
        "f:spec": {
            "f:nodeSelector": {},
            "f:tolerations": {},
            "f:containers": {"k:{\"name\":\"a\"}": {"f:args": {}, "f:new": {"f:a": {}}}},
        },
    });
    assert_eq!(encode(&reconcile(&fields, pods())), reconciled);
}

#[test]
fn validate_rejects_mismatched_configurations() {
    let why = |config: &Value| {
        validate(
            pods(),
            config,
            Strictness::Declared(EmulatedVersion::default()),
        )
        .unwrap_err()
        .to_string()
    };
    for (config, expected) in [
        (json!({"zork": 1}), ".zork: field not declared in schema"),
        (
            containers(&json!([{"name": "c"}, {"name": "c"}])),
            ".spec.containers: duplicate entries for key [name=\"c\"]",
        ),
        (
            containers(&json!([{"name": "c", "ports": [{"containerPort": "x"}]}])),
            ".spec.containers[name=\"c\"].ports[containerPort=\"x\",protocol=\"TCP\"]\
             .containerPort: expected numeric (int or float), got string",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"spec": {"hostNetwork": "yes"}}),
            ".spec.hostNetwork: expected boolean, got &{yes}",
        ),
        (
            json!({"spec": {"containers": {"a": 1}}}),
            ".spec.containers: expected list, got &{map[a:1]}",
        ),
        (json!({"spec": [1]}), ".spec: expected map, got &{[1]}"),
        (
            containers(&json!([null])),
            ".spec.containers: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"metadata": {"finalizers": [{}]}}),
            ".metadata.finalizers: element 0: associative list without keys has an element \
             that's a map type",
        ),
        (
            json!({"spec": {"tolerations": [{"key": 1, "nope": 2}], "volumes": 1}}),
            "errors:\n  .spec.tolerations[0].key: expected string, got \
             &value.valueUnstructured{Value:1}\n  .spec.tolerations[0].nope: field not declared \
             in schema\n  .spec.volumes: expected list, got &{1}",
        ),
    ] {
        assert_eq!(why(&config), expected);
    }
    let quantities = containers(&json!([{"name": "c", "resources": {"limits": {"cpu": 1}}}]));
    assert_eq!(
        validate(
            pods(),
            &quantities,
            Strictness::Declared(EmulatedVersion::default())
        ),
        Ok(())
    );
    assert_eq!(
        validate(pods(), &json!({"zork": {"a": 1}}), Strictness::Any),
        Ok(())
    );
    assert_eq!(
        validate(
            pods(),
            &json!({"spec": null}),
            Strictness::Declared(EmulatedVersion::default())
        ),
        Ok(())
    );
}

fn fields_of(schema: &Value, value: &Value) -> Value {
    let schema = Schema::read(schema);
    let of = TypeRef::Custom(CustomType::of_resource(&schema));
    assert!(is_declared(of, value), "{value}");
    encode(&field_set(of, value))
}

#[test]
fn parts_inherit_that_unknown_members_are_preserved() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
            "names": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"a": {"type": "string"}},
            }},
            "closed": {"type": "object", "additionalProperties": false},
        },
    }}});
    let value = json!({"spec": {
        "known": {"a": "x", "b": {"c": 1}}, "names": {"n": {"d": [1]}}, "other": {"e": 1},
    }});
    let wanted = json!({"f:spec": {
        "f:known": {"f:a": {}, "f:b": {".": {}, "f:c": {}}},
        "f:names": {"f:n": {".": {}, "f:d": {}}},
        "f:other": {".": {}, "f:e": {}},
    }});
    assert_eq!(fields_of(&schema, &value), wanted);
    let schema = Schema::read(&schema);
    let of = TypeRef::Custom(CustomType::of_resource(&schema));
    for unknown in [json!({"other": 1}), json!({"spec": {"closed": {"a": 1}}})] {
        assert!(!is_declared(of, &unknown), "{unknown}");
    }
}

#[test]
fn schemas_without_a_type_name_members_and_elements() {
    let schema = json!({"type": "object", "properties": {
        "any": {"x-kubernetes-preserve-unknown-fields": true, "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "string"}},
        }},
        "count": {"x-kubernetes-int-or-string": true},
    }});
    for (value, wanted) in [
        (
            json!({"any": {"set": ["a"], "b": {"c": 1}}, "count": 1}),
            json!({
                "f:any": {"f:set": {"v:\"a\"": {}}, "f:b": {".": {}, "f:c": {}}},
                "f:count": {},
            }),
        ),
        (
            json!({"any": [1], "count": "1"}),
            json!({"f:any": {}, "f:count": {}}),
        ),
        (json!({"any": "text"}), json!({"f:any": {}})),
    ] {
        assert_eq!(fields_of(&schema, &value), wanted, "{value}");
    }
}
