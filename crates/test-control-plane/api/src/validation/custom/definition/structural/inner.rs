//! The schemas inside of a schema, and the types that they require.

use serde_json::{Value, json};

use crate::members::text;
use crate::status::FieldError;

/// The junctors that hold lists of value validations.
pub(super) const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Calls `visit` for each schema directly inside, with its path.
pub(in crate::validation::custom::definition) fn each_inner(
    schema: &Value,
    at: &str,
    visit: &mut dyn FnMut(&Value, &str),
) {
    let members = |name: &str| schema.get(name).and_then(Value::as_object);
    for (name, inner) in members("properties").into_iter().flatten() {
        visit(inner, &format!("{at}.properties[{name}]"));
    }
    for name in ["additionalProperties", "items", "not"] {
        if let Some(inner) = schema.get(name).filter(|inner| inner.is_object()) {
            visit(inner, &format!("{at}.{name}"));
        }
    }
    for name in JUNCTORS {
        let list = schema.get(name).and_then(Value::as_array);
        for (index, inner) in list.into_iter().flatten().enumerate() {
            visit(inner, &format!("{at}.{name}[{index}]"));
        }
    }
}

/// Requires a type under a condition.
pub(super) fn type_if(
    schema: &Value,
    at: &str,
    of: &str,
    when: &str,
    errors: &mut Vec<FieldError>,
) {
    let found = text(schema, "type");
    if found != of {
        let (field, detail) = (format!("{at}.type"), format!("must be {of} if {when}"));
        if found.is_empty() {
            errors.push(FieldError::required(field, &detail));
        } else {
            errors.push(FieldError::invalid(field, &json!(found), &detail));
        }
    }
}
