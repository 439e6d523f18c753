//! Checks of types.
//!
//! Upstream: `typeValidator` of kube-openapi.

use serde_json::Value;

use super::node::{Node, Validation};
use crate::custom::{Schema, SchemaType};
use crate::go::strfmt;
use crate::status::FieldError;

/// Checks the type of a value. A text or list of any type passes if the schema has a format that isn't
/// one of numbers.
pub(super) fn check(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    let wanted: &[&str] = match schema.of {
        _ if schema.int_or_string => &["integer", "string"],
        Some(of) => &[of.name()],
        None => &[],
    };
    let format = format(validation, schema);
    let is_numeric = wanted.contains(&"integer") || wanted.contains(&"number");
    let (found, found_format) = match node.value {
        Value::Null => {
            if schema.nullable || wanted.is_empty() {
                validation.matched += 1;
            } else {
                wrong(validation, node, &wanted.join(","), "null");
            }
            return;
        }
        Value::Bool(_) => (SchemaType::Boolean.name(), ""),
        Value::Number(number) if number.is_i64() => (SchemaType::Integer.name(), "int64"),
        Value::Number(_) => (SchemaType::Number.name(), "float64"),
        Value::String(_) => (SchemaType::String.name(), ""),
        Value::Array(_) => (SchemaType::Array.name(), ""),
        Value::Object(_) => (SchemaType::Object.name(), ""),
    };
    if wanted.is_empty() && format.is_empty() {
        return;
    }
    validation.matched += 1;
    let is_whole = found == "number" && node.value.as_f64().is_some_and(is_safe_integer);
    let fits = wanted.contains(&found)
        || is_whole && wanted.contains(&"integer")
        || found == "integer" && wanted.contains(&"number");
    if matches!(node.value, Value::String(_) | Value::Array(_)) {
        if fits || !format.is_empty() && !is_numeric {
            validation.matched += 1;
            return;
        }
    } else if !format.is_empty() && !fits && format != found_format {
        wrong(validation, node, format, found_format);
        return;
    }
    if fits {
        validation.matched += 1;
    } else {
        wrong(validation, node, &wanted.join(","), found);
    }
}

/// Upstream: `IsFloat64AJSONInteger`
fn is_safe_integer(number: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    number.fract() == 0.0 && number.abs() <= MAX
}

fn wrong(validation: &mut Validation, node: Node<'_>, wanted: &str, found: &str) {
    let detail = format!("{} in body must be of type {wanted}: {found:?}", node.path);
    validation.push(FieldError::wrong_type(node.path, found, &detail));
}

/// Returns the format of a schema, which counts for values only if it is known.
///
/// Upstream: `StripUnsupportedFormatsPostProcessorForVersion`
pub(super) fn format<'s>(validation: &Validation, schema: &'s Schema) -> &'s str {
    let of = schema.of.filter(|_| !schema.int_or_string);
    let format = schema.checks.format.as_str();
    if validation.is_default || strfmt::is_known(of.map_or("", SchemaType::name), format) {
        format
    } else {
        ""
    }
}
