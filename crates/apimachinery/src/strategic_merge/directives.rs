//! Directives of strategic patches: `$patch` and others.

use serde_json::Value;

/// Action on an object or a list: `replace`, `delete` or `merge`.
pub(super) const PATCH: &str = "$patch";

/// Names of the fields of an object that stay.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";

/// Prefix of a field that lists values to remove from a list.
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Prefix of a field that sets the order of a list.
pub(super) const SET_ORDER: &str = "$setElementOrder/";

/// The `$patch` directive of a value.
pub(super) fn patch_of(value: &Value) -> Option<&str> {
    value.get(PATCH)?.as_str()
}

/// Returns a patch without its directives and nulls, for use where nothing exists to merge into; `None`
/// for a value that is a directive itself. Nulls in lists stay.
///
/// Upstream: `removeDirectives`, `discardNullValuesFromPatch`.
pub(super) fn without_directives(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Object(map) if map.contains_key(PATCH) => return None,
        Value::Object(map) => {
            let members = map
                .iter()
                .filter(|(key, value)| !is_directive(key) && !value.is_null())
                .filter_map(|(key, value)| Some((key.clone(), without_directives(value)?)));
            Value::Object(members.collect())
        }
        Value::Array(list) => list.iter().filter_map(without_directives).collect(),
        other => other.clone(),
    })
}

pub(super) fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER)
}
