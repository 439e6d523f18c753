//! Fractions of bytes.

use kube_apimachinery::quantity::Quantity;
use serde_json::Value;

/// An absent value.
pub(super) const NULL: Value = Value::Null;

/// Returns true if a quantity of bytes has a fraction of a byte.
pub(super) fn is_fractional(quantity: &Value) -> bool {
    let parsed = quantity.as_str().and_then(|text| text.parse().ok());
    let thousandths = parsed.map_or(0, |quantity: Quantity| quantity.milli_value());
    // As many as fit into the number have no fraction.
    thousandths % 1000 != 0 && !matches!(thousandths, i64::MIN | i64::MAX)
}

pub(super) fn fractional(place: &str, quantity: &Value) -> String {
    format!("{place}: fractional byte value {quantity} is invalid, must be an integer")
}
