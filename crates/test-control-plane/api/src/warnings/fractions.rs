//! Fractions of bytes.

use serde_json::Value;

/// An absent value.
pub(super) const NULL: Value = Value::Null;

/// Returns true if a quantity of bytes has a fraction of a byte.
pub(super) fn is_fractional(quantity: &Value) -> bool {
    let text = quantity.as_str().unwrap_or_default();
    text.ends_with(['m', 'u', 'n'])
}

pub(super) fn fractional(place: &str, quantity: &Value) -> String {
    format!("{place}: fractional byte value {quantity} is invalid, must be an integer")
}
