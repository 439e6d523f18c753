//! Access to fields of JSON objects with the semantics of Go's defaulting functions.

use std::str::FromStr;

use serde_json::Map;
use serde_json::Value;

use crate::quantity::Quantity;

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// Sets a field that is a pointer in Go, if it is absent or null.
pub(super) fn set_if_absent(object: &mut Object, name: &str, value: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a field that is a plain value in Go, if it is absent, null or the zero of the value's type.
pub(super) fn set_if_zero(object: &mut Object, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let is_other_type = match object.get(name) {
        None | Some(Value::Null) => false,
        Some(old) => old.is_string() != value.is_string(),
    };
    if !is_other_type && is_zero(object, name) {
        object.insert(name.to_owned(), value);
    }
}

/// Returns true if a field is absent, null, an empty string or the number 0.
pub(super) fn is_zero(object: &Object, name: &str) -> bool {
    match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => false,
    }
}

/// Returns a string field; an empty string if it has another type.
pub(super) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an object field.
pub(super) fn child<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name)?.as_object_mut()
}

/// Returns an object field, created if it is absent or null.
pub(super) fn child_or_new<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    set_if_absent(object, name, Map::new());
    child(object, name)
}

/// Returns the object elements of a list field.
pub(super) fn elements<'a>(
    object: &'a mut Object,
    name: &str,
) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Rounds the quantities in `limits` and `requests` of an object field.
pub(super) fn round_up_resources(object: &mut Object, name: &str) {
    if let Some(resources) = child(object, name) {
        round_up_quantities(resources, "limits");
        round_up_quantities(resources, "requests");
    }
}

/// Rounds the quantities of a resource list up to thousandths.
///
/// Upstream: `SetDefaults_ResourceList`.
pub(super) fn round_up_quantities(object: &mut Object, name: &str) {
    let list = child(object, name).into_iter().flat_map(Map::values_mut);
    for value in list {
        let text = match &*value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if let Ok(mut quantity) = Quantity::from_str(&text) {
            quantity.round_up_milli();
            *value = Value::from(quantity.to_string());
        }
    }
}
