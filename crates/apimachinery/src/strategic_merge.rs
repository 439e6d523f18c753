//! Strategic merge patch: a merge patch that merges lists by key and takes directives.
//!
//! Upstream: `strategicpatch.StrategicMergePatch`.

mod directives;
mod merge_keys;
mod order;

use serde_json::{Map, Value};

use self::directives::{
    DELETE_FROM, PATCH, RETAIN_KEYS, SET_ORDER, is_directive, patch_of, without_directives,
};
use self::merge_keys::{ListKind, is_atomic_map, list_kind};
use self::order::{Identity, normalize};

/// Why a patch can't be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategicMergeError {
    /// The patch has a directive that nobody knows.
    #[error("unknown patch type found: {0}")]
    UnknownDirective(String),
    /// An entry of a list that merges by key lacks the key.
    #[error("{0}")]
    NoMergeKey(String),
}

type Merged<T> = Result<T, StrategicMergeError>;

/// Applies a strategic patch to a whole object of this kind, or to a part of one that has the same
/// member names. What isn't an object counts as an empty one.
///
/// # Errors
///
/// An unknown directive, or an entry without its merge key.
pub fn apply(kind: &str, old: &Value, patch: &Value) -> Result<Value, StrategicMergeError> {
    let empty = Map::new();
    let old = old.as_object().unwrap_or(&empty);
    let patch = patch.as_object().unwrap_or(&empty);
    Ok(Value::Object(merge_map(kind, old, patch)?))
}

type Object = Map<String, Value>;

fn merge_map(kind: &str, old: &Object, patch: &Object) -> Merged<Object> {
    match patch.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            let mut rest = patch.clone();
            rest.remove(PATCH);
            return Ok(match without_directives(&Value::Object(rest)) {
                Value::Object(map) => map,
                _ => Map::new(),
            });
        }
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => {
            return Err(StrategicMergeError::UnknownDirective(other.to_owned()));
        }
    }
    let mut merged = old.clone();
    if let Some(kept) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        merged.retain(|key, _| kept.iter().any(|k| k == key));
    }
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            delete_values(&mut merged, name, value);
        }
    }
    for (key, value) in patch {
        if is_directive(key) {
            continue;
        }
        let order = patch
            .get(&format!("{SET_ORDER}{key}"))
            .and_then(Value::as_array);
        merge_member(kind, &mut merged, key, value, order)?;
    }
    for (key, order) in patch {
        let Some((name, order)) = key.strip_prefix(SET_ORDER).zip(order.as_array()) else {
            continue;
        };
        if !patch.contains_key(name)
            && let Some(Value::Array(list)) = merged.get(name)
        {
            let identity = identity(list_kind(kind, name));
            let sorted = normalize(identity, list.clone(), order, list);
            merged.insert(name.to_owned(), Value::Array(sorted));
        }
    }
    Ok(merged)
}

fn identity(list: ListKind) -> Identity {
    match list {
        ListKind::Keyed(key) => Identity(Some(key)),
        ListKind::Atomic | ListKind::Set => Identity(None),
    }
}

fn delete_values(merged: &mut Object, name: &str, values: &Value) {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(Value::Array(list)) = merged.get_mut(name) {
        list.retain(|item| !values.contains(item));
    }
}

fn merge_member(
    kind: &str,
    merged: &mut Object,
    key: &str,
    value: &Value,
    order: Option<&Vec<Value>>,
) -> Merged<()> {
    if value.is_null() {
        merged.remove(key);
        return Ok(());
    }
    let new = match (merged.get(key), value) {
        (Some(Value::Object(old)), Value::Object(patch)) if !is_atomic_map(kind, key) => {
            Value::Object(merge_map(kind, old, patch)?)
        }
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Value::Array(merge_list(kind, key, old, patch, order)?)
        }
        (None, Value::Array(patch)) if list_kind(kind, key) != ListKind::Atomic => {
            Value::Array(merge_list(kind, key, &[], patch, order)?)
        }
        _ => without_directives(value),
    };
    merged.insert(key.to_owned(), new);
    Ok(())
}

fn merge_list(
    kind: &str,
    name: &str,
    old: &[Value],
    patch: &[Value],
    order: Option<&Vec<Value>>,
) -> Merged<Vec<Value>> {
    let list = list_kind(kind, name);
    let identity = identity(list);
    let mut merged: Vec<Value> = old.to_vec();
    let mut added: Vec<Value> = Vec::new();
    match list {
        ListKind::Atomic => return Ok(patch.iter().map(without_directives).collect()),
        ListKind::Set => {
            added.extend_from_slice(patch);
            for item in patch {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
        }
        ListKind::Keyed(key) => {
            if patch.iter().any(|item| patch_of(item) == Some("replace")) {
                merged.clear();
            }
            for item in patch {
                let directive = patch_of(item);
                if directive == Some("replace") {
                    continue;
                }
                if item.get(key).is_none() {
                    return Err(no_merge_key(item, key));
                }
                if directive == Some("delete") {
                    merged.retain(|other| !identity.same(other, item));
                    continue;
                }
                added.push(item.clone());
                merge_item(kind, identity, &mut merged, item)?;
            }
        }
    }
    Ok(normalize(identity, merged, order.unwrap_or(&added), old))
}

fn merge_item(kind: &str, identity: Identity, merged: &mut Vec<Value>, item: &Value) -> Merged<()> {
    let found = identity.position(merged, item);
    match (found.map(|i| &mut merged[i]), item) {
        (Some(slot), Value::Object(patch)) => {
            let old = slot.as_object().cloned().unwrap_or_default();
            *slot = Value::Object(merge_map(kind, &old, patch)?);
        }
        (Some(slot), _) => *slot = item.clone(),
        (None, _) => merged.push(without_directives(item)),
    }
    Ok(())
}

fn no_merge_key(item: &Value, key: &str) -> StrategicMergeError {
    StrategicMergeError::NoMergeKey(format!(
        "map: {item} does not contain declared merge key: {key}"
    ))
}
