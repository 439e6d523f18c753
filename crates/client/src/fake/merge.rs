//! Patch merging, limited to this controller's patches.

use serde_json::{Map, Value};

/// Merges by RFC 7386: each field separately, null removes it, other values replace it.
pub(super) fn plain(old: Value, change: Value) -> Value {
    let Value::Object(change) = change else {
        return change;
    };
    let mut members = into_members(old);
    for (name, value) in change {
        if value.is_null() {
            members.remove(&name);
        } else {
            let old_value = members.remove(&name).unwrap_or_default();
            members.insert(name, plain(old_value, value));
        }
    }
    Value::Object(members)
}

/// Merges like the API does for typed objects: owner references by uid, finalizers as a set, other
/// lists as a whole; `$patch` deletes or replaces an object.
pub(super) fn strategic(old: Value, change: Value) -> Value {
    let Value::Object(mut change) = change else {
        return change;
    };
    match change.remove("$patch").as_ref().and_then(Value::as_str) {
        Some("delete") => return Value::Null,
        Some("replace") => return Value::Object(change),
        _ => {}
    }
    let mut members = into_members(old);
    for (name, value) in change {
        if value.is_null() {
            members.remove(&name);
            continue;
        }
        let old_value = members.remove(&name).unwrap_or_default();
        let new_value = match (name.as_str(), value) {
            ("ownerReferences", Value::Array(changes)) => by_uid(old_value, changes),
            ("finalizers", Value::Array(changes)) => as_set(old_value, changes),
            (_, value) => strategic(old_value, value),
        };
        // An emptied list is omitted instead of served as an empty one.
        if !new_value.is_null() && new_value != Value::Array(Vec::new()) {
            members.insert(name, new_value);
        }
    }
    Value::Object(members)
}

fn into_members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn into_entries(value: Value) -> Vec<Value> {
    match value {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    }
}

fn by_uid(old: Value, changes: Vec<Value>) -> Value {
    let mut entries = into_entries(old);
    for change in changes {
        if change["$patch"] == "replace" {
            return Value::Array(Vec::new());
        }
        let position = entries
            .iter()
            .position(|entry| entry["uid"] == change["uid"]);
        match (position, change["$patch"] == "delete") {
            (Some(index), true) => {
                entries.remove(index);
            }
            (None, true) => {}
            (Some(index), false) => entries[index] = strategic(entries[index].take(), change),
            (None, false) => entries.push(change),
        }
    }
    Value::Array(entries)
}

fn as_set(old: Value, changes: Vec<Value>) -> Value {
    let mut entries = into_entries(old);
    for change in changes {
        if !entries.contains(&change) {
            entries.push(change);
        }
    }
    Value::Array(entries)
}
