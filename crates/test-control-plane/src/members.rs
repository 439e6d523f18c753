//! Reads members of JSON values; what is missing, or of another type, is empty.
//!
//! The functions named `…_at` take a JSON pointer, the others the name of a member.

use std::slice::Iter;

use serde_json::Value;

/// A text.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    let found = value.get(member).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// A text.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The elements of a list.
pub(crate) fn list<'a>(value: &'a Value, member: &str) -> Iter<'a, Value> {
    let found = value.get(member).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default().iter()
}

/// The elements of a list.
pub(crate) fn list_at<'a>(value: &'a Value, pointer: &str) -> Iter<'a, Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default().iter()
}

/// A whole number; 0 if there is none.
pub(crate) fn number_at(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}
