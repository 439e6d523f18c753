//! Validation errors of single fields.

use kube_apimachinery::json::to_go_string;
use serde_json::Value;

use crate::go::fmt;

/// A validation error of one field, a cause of a 422.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The cause's reason.
    pub reason: &'static str,
    /// The path of the field.
    pub field: String,
    /// The cause's message.
    pub message: String,
}

impl FieldError {
    /// A required value is missing; the detail may be empty.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = with_detail("Required value", detail);
        Self::new("FieldValueRequired", field, message)
    }

    /// A value is invalid.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::invalid_text(field, &shown(value), detail)
    }

    /// A value that is not shown is invalid.
    pub fn invalid_object(field: impl Into<String>, detail: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {detail}"),
        )
    }

    /// A value, formatted by the caller, is invalid.
    pub fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        let message = with_detail(&format!("Invalid value: {value}"), detail);
        Self::new("FieldValueInvalid", field, message)
    }

    /// A value isn't in the enumeration.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        Self::not_supported_text(field, &shown(value), supported)
    }

    /// A value, formatted by the caller, isn't in the enumeration.
    pub fn not_supported_text(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let list = list.join(", ");
        let message = format!("Unsupported value: {value}: supported values: {list}");
        Self::new("FieldValueNotSupported", field, message)
    }

    /// A value is forbidden or must not change.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        let message = with_detail("Forbidden", detail);
        Self::new("FieldValueForbidden", field, message)
    }

    /// A value is repeated.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {}", shown(value));
        Self::new("FieldValueDuplicate", field, message)
    }

    /// A value that is not shown is repeated.
    pub fn duplicate_object(field: impl Into<String>) -> Self {
        Self::new("FieldValueDuplicate", field, "Duplicate value".to_owned())
    }

    /// A value, formatted by the caller, is repeated.
    pub fn duplicate_text(field: impl Into<String>, value: &str) -> Self {
        let message = format!("Duplicate value: {value}");
        Self::new("FieldValueDuplicate", field, message)
    }

    /// A value is too long.
    pub fn too_long(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: {detail}"))
    }

    /// A value has another type than the schema says; `found` is the name of its type.
    pub fn wrong_type(field: impl Into<String>, found: &str, detail: &str) -> Self {
        let message = format!("Invalid value: {found:?}: {detail}");
        Self::new("FieldValueTypeInvalid", field, message)
    }

    /// A list or map has too many elements.
    pub fn too_many(field: impl Into<String>, found: usize, max: i64) -> Self {
        let detail = match max {
            1 => "must have at most 1 item".to_owned(),
            max if max < 0 => "has too many items".to_owned(),
            max => format!("must have at most {max} items"),
        };
        let message = format!("Too many: {found}: {detail}");
        Self::new("FieldValueTooMany", field, message)
    }

    /// A referenced item doesn't exist.
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    /// The value could not be checked.
    pub(crate) fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::new("InternalError", field, format!("Internal error: {detail}"))
    }

    /// A value is accepted, but a client should know the detail.
    pub(crate) fn warning(field: impl Into<String>, detail: &str) -> Self {
        Self::new("", field, detail.to_owned())
    }

    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self {
            reason,
            field: field.into(),
            message,
        }
    }
}

/// Returns the text of a value: a number and an object as Go prints them, anything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(_) => fmt::value(value),
        Value::Array(_) | Value::Object(_) => to_go_string(value),
        _ => value.to_string(),
    }
}

fn with_detail(start: &str, detail: &str) -> String {
    if detail.is_empty() {
        start.to_owned()
    } else {
        format!("{start}: {detail}")
    }
}
