//! The values behind `/scale` of a custom resource.
//!
//! Upstream: `ValidateScaleSpec` and `ValidateScaleStatus`

use serde_json::{Value, json};

use crate::custom::Scale;
use crate::go::fmt;
use crate::status::FieldError;

/// Returns the errors in the values that the paths lead to; those of the whole object, or only those
/// of its status.
pub(super) fn errors(scale: &Scale, object: &Value, is_status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !is_status {
        errors.extend(of_count(object, &scale.spec));
    }
    errors.extend(of_count(object, &scale.status));
    if let Some(path) = &scale.selector {
        let error = match nested(object, path) {
            Ok(None | Some(Value::String(_))) => None,
            Ok(Some(other)) => Some(wrong_type(path, other, "string")),
            Err(error) => Some(error),
        };
        errors.extend(error.map(|detail| FieldError::invalid(path, &json!(""), &detail)));
    }
    errors
}

fn of_count(object: &Value, path: &str) -> Option<FieldError> {
    let invalid = |count: i64, detail: &str| FieldError::invalid(path, &json!(count), detail);
    let found = match nested(object, path) {
        Ok(found) => found?,
        Err(detail) => return Some(invalid(0, &detail)),
    };
    match found.as_i64() {
        None => Some(invalid(0, &wrong_type(path, found, "int64"))),
        Some(count) if count < 0 => Some(invalid(count, "should be a non-negative integer")),
        Some(count) if count > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            Some(invalid(count, &detail))
        }
        Some(_) => None,
    }
}

/// Returns the value at a path, if it exists.
///
/// # Errors
///
/// The text of the error of a step into a value that has no fields.
///
/// Upstream: `NestedFieldNoCopy`
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let (mut place, mut at) = (object, String::new());
    for step in path.trim_start_matches('.').split('.') {
        at.extend([".", step]);
        place = match place {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(step) {
                Some(found) => found,
                None => return Ok(None),
            },
            other => return Err(wrong_type(&at, other, "map[string]interface{}")),
        };
    }
    Ok(Some(place))
}

fn wrong_type(path: &str, found: &Value, wanted: &str) -> String {
    let (shown, of) = (fmt::value(found), fmt::type_name(found));
    format!("{path} accessor error: {shown} is of the type {of}, expected {wanted}")
}
