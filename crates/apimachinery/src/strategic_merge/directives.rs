//! The members of a strategic patch that aren't values: `$patch` and its like.

use serde_json::{Map, Value};

/// Says what to do with an object or a list: `replace`, `delete` or `merge`.
pub(super) const PATCH: &str = "$patch";

/// Lists the members of an object that stay.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";

/// Starts a member that lists values to take out of a list.
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Starts a member that says how a list is to be ordered.
pub(super) const SET_ORDER: &str = "$setElementOrder/";

/// The `$patch` of a value.
pub(super) fn patch_of(value: &Value) -> Option<&str> {
    value.get(PATCH)?.as_str()
}

/// What is left of a patch that meets nothing to merge with.
///
/// Upstream: `dropDirectives`.
pub(super) fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| !is_directive(key) && !value.is_null())
                .map(|(key, value)| (key.clone(), without_directives(value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(list) => list
            .iter()
            .filter(|item| !matches!(patch_of(item), Some("delete" | "replace")))
            .map(without_directives)
            .collect(),
        other => other.clone(),
    }
}

pub(super) fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER)
}
