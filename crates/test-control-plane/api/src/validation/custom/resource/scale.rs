//! The values behind `/scale` of a custom resource.

use serde_json::{Value, json};

use crate::custom::{Scale, found};
use crate::status::FieldError;

/// Returns the errors in the values that the paths lead to; those of the object itself, or those
/// of its status.
pub(super) fn errors(scale: &Scale, object: &Value, is_status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = if is_status {
        &scale.status
    } else {
        &scale.spec
    };
    if let Some(number) = found(object, path).and_then(Value::as_i64) {
        if number < 0 {
            let detail = "should be a non-negative integer";
            errors.push(FieldError::invalid(path.as_str(), &json!(number), detail));
        } else if number > i64::from(i32::MAX) {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.push(FieldError::invalid(path.as_str(), &json!(number), &detail));
        }
    }
    if let Some(path) = scale.selector.as_ref().filter(|_| is_status)
        && let Some(value) = found(object, path).filter(|value| !value.is_string())
    {
        let of = match value {
            Value::Number(number) if number.is_f64() => "float64",
            Value::Number(_) => "int64",
            Value::Bool(_) => "bool",
            Value::Array(_) => "[]interface {}",
            _ => "map[string]interface {}",
        };
        let detail = format!("{path} accessor error: {value} is of the type {of}, expected string");
        errors.push(FieldError::invalid(path.as_str(), &json!(""), &detail));
    }
    errors
}
