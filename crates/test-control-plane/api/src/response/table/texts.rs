//! Texts of cells.

use serde_json::Value;

pub(super) use crate::members::{list_at as list, number_at as number, text_at as text};

/// Joins the labels at a pointer; empty if there are none.
pub(super) fn labels(value: &Value, pointer: &str) -> String {
    let map = value.pointer(pointer).and_then(Value::as_object);
    let labels: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    labels.join(",")
}

/// Returns the text, or `<none>` if it is empty.
pub(super) fn or_none(text: &str) -> &str {
    or(text, "<none>")
}

/// Returns the text, or another one if it is empty.
pub(super) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// Joins texts with commas.
pub(super) fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(",")
}
