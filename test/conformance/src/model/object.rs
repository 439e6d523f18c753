//! Access to fields of objects.

use serde_json::{Map, Value, json};

/// String at a pointer; empty if absent.
pub(super) fn text<'a>(object: &'a Value, place: &str) -> &'a str {
    object.pointer(place).and_then(Value::as_str).unwrap_or("")
}

/// Number at a pointer; 0 if absent.
pub(super) fn number(object: &Value, place: &str) -> i64 {
    object.pointer(place).and_then(Value::as_i64).unwrap_or(0)
}

/// List at a pointer; empty if absent.
pub(super) fn list<'a>(object: &'a Value, place: &str) -> &'a [Value] {
    object
        .pointer(place)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Map at a pointer; empty if absent.
pub(super) fn map(object: &Value, place: &str) -> Map<String, Value> {
    object
        .pointer(place)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(super) fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][key].as_str().unwrap_or("")
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn owners(object: &Value) -> &[Value] {
    list(object, "/metadata/ownerReferences")
}

/// The first controlling owner.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    owners(object)
        .iter()
        .find(|owner| owner["controller"] == true)
}

/// Sets the owners; removes the field if there are none.
pub(super) fn set_owners(object: &mut Value, owners: Vec<Value>) {
    set_or_remove(
        &mut object["metadata"],
        "ownerReferences",
        owners.is_empty(),
        owners.into(),
    );
}

/// Sets a field, or removes it if it would be empty.
pub(super) fn set_or_remove(object: &mut Value, member: &str, is_empty: bool, value: Value) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    if is_empty {
        members.remove(member);
    } else {
        members.insert(member.to_owned(), value);
    }
}

/// A controlling owner reference.
pub(super) fn controller_reference(api: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": api,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
