//! Readers and writers of fields of JSON values. A missing field, or one of another type, reads as
//! empty.
//!
//! Functions named `…_at` take a JSON pointer without escapes, the others the name of a field.

pub(crate) mod resources;

use std::slice::Iter;

use serde_json::{Map, Value, json};

/// Returns the group of an `apiVersion`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the value at a JSON pointer without escapes, without copying text.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer.split('/').skip(1);
    steps.try_fold(value, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Reads a string.
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    let found = value.get(member).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Reads a string.
pub fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = at(value, pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Reads the elements of a list.
pub fn list<'a>(value: &'a Value, member: &str) -> Iter<'a, Value> {
    let found = value.get(member).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default().iter()
}

/// Reads the elements of a list.
pub fn list_at<'a>(value: &'a Value, pointer: &str) -> Iter<'a, Value> {
    let found = at(value, pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default().iter()
}

/// Reads an integer; 0 if there is none.
pub fn number_at(value: &Value, pointer: &str) -> i64 {
    at(value, pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns a field that is a JSON object, replacing any other value by an empty object.
///
/// # Panics
///
/// Panics if `value` itself is neither an object nor null.
pub fn object_mut<'a>(value: &'a mut Value, member: &str) -> &'a mut Map<String, Value> {
    let slot = &mut value[member];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut()
        .expect("the member was made an object just above")
}

/// Sets a field, or removes it if the value is `None`.
pub fn set_or_remove(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) if !value.is_null() => {
            map.insert(key.to_owned(), value);
        }
        _ => {
            map.remove(key);
        }
    }
}

/// Sets a field of an object to that of another one, or removes it if that has none.
pub(crate) fn copy_field(into: &mut Value, from: &Value, member: &str) {
    if let Some(map) = into.as_object_mut() {
        set_or_remove(map, member, from.get(member).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_members_are_empty() {
        let value = json!({"a": {"b": ["x", {"n": 3}]}, "t": "y"});
        assert_eq!(at(&value, ""), Some(&value));
        assert_eq!(text_at(&value, "/a/b/0"), "x");
        assert_eq!(number_at(&value, "/a/b/1/n"), 3);
        assert_eq!(list_at(&value, "/a/b").len(), 2);
        assert_eq!(text(&value, "t"), "y");
        for pointer in ["/a/b/2", "/a/b/x", "/t/y", "/z"] {
            assert_eq!(at(&value, pointer), None, "{pointer}");
        }
        assert_eq!((text(&value, "a"), list(&value, "t").len()), ("", 0));
        assert_eq!(
            (list_at(&value, "/t").len(), number_at(&value, "/t")),
            (0, 0)
        );
    }
}
