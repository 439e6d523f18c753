//! Tests of field ownership after writes and applies.

use serde_json::{Value, json};

use super::*;
use crate::kinds::{self, SCALE};
use crate::settings::EmulatedVersion;
use crate::status::ApiError;

const T1: &str = "2026-01-01T00:00:01Z";
const T2: &str = "2026-01-01T00:00:02Z";

fn writer<'a>(manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer {
        kind: kinds::by_resource("", "v1", "configmaps").unwrap(),
        subresource: "",
        manager,
        now,
    }
}

/// A stored config map.
fn map(data: &Value, managed: &Value) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "m", "uid": "u", "managedFields": managed},
        "data": data,
    })
}

/// A config map configuration.
fn config(data: &Value) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": data})
}

fn entry(manager: &str, operation: &str, time: &str, fields: &Value) -> Value {
    json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

fn updater(manager: &str, time: &str, fields: &Value) -> Value {
    entry(manager, "Update", time, &json!({"f:data": fields}))
}

fn applier(manager: &str, time: &str, fields: &Value) -> Value {
    entry(manager, "Apply", time, &json!({"f:data": fields}))
}

/// Applies without force.
fn apply(writer: Writer<'_>, live: &Value, config: &Value) -> Result<Applied, ApiError> {
    super::apply(
        &writer,
        Some(live),
        config,
        false,
        Strictness::Declared(EmulatedVersion::default()),
    )
}

#[test]
fn creator_owns_all_fields() {
    let new = json!({
        "metadata": {"name": "m", "uid": "u", "labels": {"l": "1"}, "creationTimestamp": T1},
        "data": {"a": "1"},
    });
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
        "f:data": {".": {}, "f:a": {}},
    });
    let expected = json!([entry("me", "Update", T1, &fields)]);
    assert_eq!(track(&writer("me", T1), None, &new), expected);
    let nothing = json!({"metadata": {"name": "m"}});
    assert_eq!(track(&writer("me", T1), None, &nothing), Value::Null);
    let unnamed = track(&writer("", T1), None, &new);
    assert_eq!(unnamed[0]["manager"], "unknown");
}

#[test]
fn updater_owns_the_fields_it_changes() {
    let mine = updater("me", T1, &json!({".": {}, "f:a": {}, "f:b": {}}));
    let live = map(&json!({"a": "1", "b": "1"}), &json!([mine]));
    let new = map(&json!({"a": "2", "c": "1"}), &json!([mine]));
    let expected = json!([
        updater("me", T1, &json!({})),
        updater("you", T2, &json!({"f:a": {}, "f:c": {}})),
    ]);
    assert_eq!(track(&writer("you", T2), Some(&live), &new), expected);
    let expected = json!([updater("me", T2, &json!({".": {}, "f:a": {}, "f:c": {}}))]);
    assert_eq!(track(&writer("me", T2), Some(&live), &new), expected);
}

#[test]
fn unchanged_write_keeps_the_time() {
    let managed = json!([updater("me", T1, &json!({".": {}, "f:a": {}}))]);
    let live = map(&json!({"a": "1"}), &managed);
    assert_eq!(track(&writer("me", T2), Some(&live), &live), managed);
    assert_eq!(track(&writer("you", T2), Some(&live), &live), managed);
}

#[test]
fn managers_from_a_client_are_used_if_valid() {
    let managed = json!([updater("me", T1, &json!({".": {}, "f:a": {}}))]);
    let live = map(&json!({"a": "1"}), &managed);
    let sent = json!([updater("other", T1, &json!({"f:a": {}}))]);
    let track = |sent: &Value| {
        let new = map(&json!({"a": "1"}), sent);
        track(&writer("me", T2), Some(&live), &new)
    };
    assert_eq!(track(&sent), sent);
    assert_eq!(track(&Value::Null), managed);
    assert_eq!(track(&json!([{}])), Value::Null);
    assert_eq!(track(&json!([])), Value::Null);
    for (member, value) in [
        ("operation", json!("Steal")),
        ("apiVersion", json!("")),
        ("fieldsType", json!("FieldsV2")),
        ("fieldsType", json!("")),
        ("fieldsV1", json!({"data": {}})),
    ] {
        let mut invalid = sent.clone();
        invalid[0][member] = value;
        assert_eq!(track(&invalid), managed, "{member}");
    }
    // Entries of removed versions are dropped.
    let mut old = sent.clone();
    old[0]["apiVersion"] = json!("v0");
    assert_eq!(track(&old), Value::Null);
    let through = Writer {
        subresource: "status",
        ..writer("me", T2)
    };
    let new = map(&json!({"a": "1"}), &json!([{}]));
    assert_eq!(super::track(&through, Some(&live), &new), managed);
}

#[test]
fn object_without_managers_gets_them_by_apply() {
    let live = map(&json!({"a": "1"}), &Value::Null);
    let new = map(&json!({"a": "2"}), &Value::Null);
    assert_eq!(track(&writer("me", T2), Some(&live), &new), Value::Null);
    let applied = apply(writer("me", T2), &live, &config(&json!({"b": "1"}))).unwrap();
    let expected = json!([
        applier("me", T2, &json!({"f:b": {}})),
        updater("before-first-apply", T2, &json!({".": {}, "f:a": {}})),
    ]);
    assert_eq!(applied.managed_fields, expected);
    assert_eq!(applied.object["data"], json!({"a": "1", "b": "1"}));
}

#[test]
fn more_than_ten_updaters_are_folded() {
    let mut object = map(&json!({}), &Value::Null);
    object["metadata"]["managedFields"] = json!([applier("an", T1, &json!({}))]);
    for i in 0..13 {
        let mut new = object.clone();
        new["data"][format!("k{i:02}")] = json!("1");
        let (manager, now) = (
            format!("m{i:02}"),
            format!("2026-01-01T00:00:{:02}Z", i + 10),
        );
        let managed = track(&writer(&manager, &now), Some(&object), &new);
        new["metadata"]["managedFields"] = managed;
        object = new;
    }
    let managed = object["metadata"]["managedFields"].as_array().unwrap();
    let names: Vec<&str> = managed
        .iter()
        .map(|e| e["manager"].as_str().unwrap())
        .collect();
    let mut expected = vec!["an", "ancient-changes"];
    let kept: Vec<String> = (4..13).map(|i| format!("m{i:02}")).collect();
    expected.extend(kept.iter().map(String::as_str));
    assert_eq!(names, expected);
    let ancient = updater(
        "ancient-changes",
        "2026-01-01T00:00:13Z",
        &json!({"f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}}),
    );
    assert_eq!(managed[1], ancient);
}

#[test]
fn apply_removes_its_dropped_fields_unless_owned() {
    let managed = json!([
        applier("me", T1, &json!({"f:a": {}, "f:b": {}, "f:c": {}})),
        applier("you", T1, &json!({"f:b": {}})),
        updater("it", T1, &json!({"f:c": {}})),
    ]);
    let live = map(&json!({"a": "1", "b": "1", "c": "1", "d": "1"}), &managed);
    let applied = apply(writer("me", T2), &live, &config(&json!({}))).unwrap();
    assert_eq!(
        applied.object["data"],
        json!({"b": "1", "c": "1", "d": "1"})
    );
    let expected = json!([
        applier("you", T1, &json!({"f:b": {}})),
        applier("me", T2, &json!({})),
        updater("it", T1, &json!({"f:c": {}})),
    ]);
    assert_eq!(applied.managed_fields, expected);
}

#[test]
fn removing_the_last_entry_removes_the_map() {
    let managed = json!([applier("me", T1, &json!({"f:a": {}}))]);
    let live = map(&json!({"a": "1"}), &managed);
    let none = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}});
    let applied = apply(writer("me", T2), &live, &none).unwrap();
    assert_eq!(applied.object.get("data"), None);
    assert_eq!(applied.managed_fields, Value::Null);
}

#[test]
fn apply_conflicts_with_other_owners() {
    let managed = json!([
        applier("one", T1, &json!({"f:a": {}, "f:b": {}})),
        updater("two", T1, &json!({"f:c": {}})),
    ]);
    let live = map(&json!({"a": "1", "b": "1", "c": "1"}), &managed);
    let wanted = config(&json!({"a": "1", "b": "2", "c": "2"}));
    let err = apply(writer("me", T2), &live, &wanted).unwrap_err();
    assert_eq!(err.code, 409);
    assert_eq!(
        err.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.b\nconflicts with \
         \"two\" using v1:\n- .data.c"
    );
    let forced = super::apply(
        &writer("me", T2),
        Some(&live),
        &wanted,
        true,
        Strictness::Declared(EmulatedVersion::default()),
    );
    let expected = json!([
        applier("one", T1, &json!({"f:a": {}})),
        applier("me", T2, &json!({"f:a": {}, "f:b": {}, "f:c": {}})),
    ]);
    assert_eq!(forced.unwrap().managed_fields, expected);
}

#[test]
fn repeated_apply_changes_nothing() {
    let managed = json!([applier("me", T1, &json!({"f:a": {}}))]);
    let live = map(&json!({"a": "1", "b": "1"}), &managed);
    let applied = apply(writer("me", T2), &live, &config(&json!({"a": "1"}))).unwrap();
    assert_eq!(applied.object, live);
    assert_eq!(applied.managed_fields, managed);
    // A manager that joins an unchanged field gets no time, because the object doesn't change.
    let shared = apply(writer("you", T2), &live, &config(&json!({"a": "1"}))).unwrap();
    let mut yours = applier("you", T2, &json!({"f:a": {}}));
    yours.as_object_mut().unwrap().remove("time");
    assert_eq!(shared.managed_fields, json!([yours, managed[0]]));
}

#[test]
fn apply_rejects_other_kinds_and_managers() {
    let live = map(&json!({}), &Value::Null);
    for (config, why) in [
        (
            json!({"metadata": {"name": "m"}}),
            "invalid object type: /, Kind=",
        ),
        (
            json!({"kind": "Secret", "apiVersion": "v1"}),
            "invalid object type: /v1, Kind=Secret",
        ),
        (
            json!({"kind": "Deployment", "apiVersion": "apps/v1"}),
            "invalid object type: apps/v1, Kind=Deployment",
        ),
        (
            map(&json!({}), &json!([])),
            "metadata.managedFields must be nil",
        ),
    ] {
        let err = apply(writer("me", T1), &live, &config).unwrap_err();
        assert_eq!((err.code, err.message.as_str()), (400, why));
    }
    let mut unfit = config(&json!({"a": 1}));
    unfit["metadata"]["namespace"] = json!("ns");
    let err = apply(writer("me", T1), &live, &unfit).unwrap_err();
    assert_eq!(err.code, 500);
    assert_eq!(
        err.message,
        "failed to create typed patch object (ns/m; /v1, Kind=ConfigMap): .data.a: expected \
         string, got &value.valueUnstructured{Value:1}"
    );
}

#[test]
fn kubectl_takes_over_client_side_applied_fields() {
    let old = config(&json!({"a": "1", "b": "1"}));
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let managed = json!([updater(
        "kubectl-client-side-apply",
        T1,
        &json!({".": {}, "f:a": {}, "f:b": {}})
    )]);
    let mut live = map(&json!({"a": "1", "b": "1"}), &managed);
    live["metadata"]["annotations"] = json!({annotation: old.to_string()});
    let new = config(&json!({"a": "2", "b": "1"}));
    let err = apply(writer("other", T2), &live, &new).unwrap_err();
    assert_eq!(err.code, 409);
    let applied = apply(writer("kubectl", T2), &live, &new).unwrap();
    assert_eq!(applied.object["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(
        applied.object["metadata"]["annotations"][annotation],
        json!(format!("{new}\n"))
    );
    // A field that another manager changed since then no longer belongs to kubectl.
    live["data"]["a"] = json!("3");
    let err = apply(writer("kubectl", T2), &live, &new).unwrap_err();
    assert_eq!(
        err.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: \
         .data.a"
    );
}

#[test]
fn event_managers_use_the_written_version() {
    let core = kinds::by_resource("", "v1", "events").unwrap();
    let new = kinds::by_resource("events.k8s.io", "v1", "events").unwrap();
    let event = json!({
        "kind": "Event", "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e"}, "note": "x", "eventTime": null, "regarding": {},
        "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
    });
    let managed = track(
        &Writer {
            kind: new,
            ..writer("me", T1)
        },
        None,
        &event,
    );
    assert_eq!(managed[0]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(managed[0]["fieldsV1"], json!({"f:note": {}}));
    let stored = |message: &str| {
        json!({
            "kind": "Event", "apiVersion": "v1",
            "metadata": {"name": "e", "uid": "u", "managedFields": managed},
            "message": message, "eventTime": null, "involvedObject": {}, "source": {},
            "firstTimestamp": null, "lastTimestamp": null,
            "reportingComponent": "", "reportingInstance": "",
        })
    };
    let changed = Writer {
        kind: core,
        ..writer("you", T2)
    };
    let managed = track(&changed, Some(&stored("x")), &stored("y"));
    let expected = entry("you", "Update", T2, &json!({"f:message": {}}));
    assert_eq!(managed, json!([expected]));
}

#[test]
fn scale_managers_own_the_replicas() {
    let sets = kinds::by_resource("apps", "v1", "statefulsets").unwrap();
    let own = |manager: &str, fields: Value| {
        let mut own = entry(manager, "Update", T1, &json!({"f:spec": fields}));
        own["apiVersion"] = json!("apps/v1");
        own
    };
    let both = json!({"f:replicas": {}, "f:serviceName": {}});
    let parent = json!([own("me", both), own("you", json!({"f:selector": {}}))]);
    let scale = to_subresource(sets, Some(&parent));
    let mut mine = own("me", json!({"f:replicas": {}}));
    mine["apiVersion"] = json!("autoscaling/v1");
    assert_eq!(scale, json!([mine]));
    let live = json!({"metadata": {"uid": "u", "managedFields": scale}, "spec": {"replicas": 1}});
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    let scaler = Writer {
        kind: &SCALE,
        subresource: "scale",
        ..writer("it", T2)
    };
    let after = to_parent(
        sets,
        Some(&parent),
        Some(&track(&scaler, Some(&live), &new)),
    );
    let mut its = own("it", json!({"f:replicas": {}}));
    its["subresource"] = json!("scale");
    its.as_object_mut().unwrap().remove("time");
    let rest = own("me", json!({"f:serviceName": {}}));
    assert_eq!(
        after,
        json!([its, rest, own("you", json!({"f:selector": {}}))])
    );
}
