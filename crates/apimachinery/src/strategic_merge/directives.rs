//! Directives of strategic patches: `$patch` and others.

use serde_json::{Map, Value};

/// Action on an object or a list: `replace`, `delete` or `merge`.
pub(super) const PATCH: &str = "$patch";

/// Names of the members of an object that stay.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";

/// Prefix of a member that lists values to remove from a list.
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Prefix of a member that sets the order of a list.
pub(super) const SET_ORDER: &str = "$setElementOrder/";

/// The `$patch` directive of a value.
pub(super) fn patch_of(value: &Value) -> Option<&str> {
    value.get(PATCH)?.as_str()
}

/// Returns a patch without its directives, for use where no old value exists.
///
/// Upstream: `dropDirectives`.
pub(super) fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(members_without_directives(map)),
        Value::Array(list) => list
            .iter()
            .filter(|item| !matches!(patch_of(item), Some("delete" | "replace")))
            .map(without_directives)
            .collect(),
        other => other.clone(),
    }
}

/// The same for the members of an object.
pub(super) fn members_without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, value)| !is_directive(key) && !value.is_null())
        .map(|(key, value)| (key.clone(), without_directives(value)))
        .collect()
}

pub(super) fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER)
}
