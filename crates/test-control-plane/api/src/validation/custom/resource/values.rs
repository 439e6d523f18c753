//! Checks of strings and numbers.
//!
//! Upstream: `stringValidator`, `formatValidator` and `numberValidator` of kube-openapi.

use serde_json::{Value, json};

use super::node::{Node, Validation, exceeds, is_below};
use super::types;
use crate::custom::{Schema, SchemaType};
use crate::go::{fmt, strfmt};
use crate::status::FieldError;

/// The largest distance of a quotient from an integer that counts as a multiple.
const MULTIPLE_TOLERANCE: f64 = 1e-9;

/// Largest integer up to which doubles hold every integer exactly.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The smallest power of two beyond the 32-bit integers.
const INT32_END: f64 = 2_147_483_648.0;

/// The smallest power of two beyond the 64-bit integers.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// Checks a text. Only the first wrong bound is reported.
pub(super) fn string(validation: &mut Validation, schema: &Schema, node: Node<'_>, found: &str) {
    let checks = &schema.checks;
    let length = found.chars().count();
    validation.matched += 1;
    if let Some(max) = checks.max_length.filter(|max| is_below(*max, length)) {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            max if max < 0 => "value is too long".to_owned(),
            max => format!("may not be more than {max} bytes"),
        };
        validation.push(FieldError::too_long(node.path, &detail));
    } else if let Some(min) = checks.min_length.filter(|min| exceeds(*min, length)) {
        let detail = format!("should be at least {min} chars long");
        invalid(validation, node, &detail);
    } else if let Some(pattern) = &checks.pattern
        && !pattern.compiled.is_match(found)
    {
        let detail = format!("should match '{}'", pattern.source);
        invalid(validation, node, &detail);
    }
    let format = types::format(validation, schema);
    if strfmt::is_known("string", format) {
        validation.matched += 1;
        if !strfmt::matches(format, found) {
            let detail = format!("{} in body must be of type {format}: {found:?}", node.path);
            validation.push(FieldError::wrong_type(node.path, found, &detail));
        }
    }
}

/// Checks a number. Bounds are integers for an integer, if they have such a value.
pub(super) fn number(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    let Some(number) = node.value.as_f64() else {
        return;
    };
    validation.matched += 2;
    let checks = &schema.checks;
    let in_range = |validation: &mut Validation, number: f64, name: &str| {
        let is_int64 = is_int64(number) || name == "Checked" && node.value.is_i64();
        let wrong = out_of_range(schema, number, is_int64);
        if let Some(wrong) = &wrong {
            let detail = format!("{name} value must be of type {wrong} in {}", node.path);
            validation.push(FieldError::invalid("", &json!(""), &detail));
        }
        wrong.is_none()
    };
    in_range(validation, number, "Checked");
    // The part of a bound that counts, and its text.
    let as_bound = |bound: f64, is_native: bool| {
        if is_native && node.value.is_i64() {
            (bound.trunc(), bound.trunc().to_string())
        } else {
            (bound, fmt::float(bound))
        }
    };
    if let Some(factor) = checks.multiple_of {
        let is_native = in_range(validation, factor, "MultipleOf");
        let (factor, shown) = as_bound(factor, is_native);
        if factor <= 0.0 {
            let path = node.path;
            let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
            validation.push(FieldError::invalid_text(node.path, &shown, &detail));
        } else if !is_multiple(number, factor) {
            invalid(
                validation,
                node,
                &format!("should be a multiple of {shown}"),
            );
        }
    }
    if let Some(min) = checks.minimum {
        let is_native = in_range(validation, min, "Minimum boundary");
        let (min, shown) = as_bound(min, is_native);
        if checks.exclusive_minimum && number <= min {
            invalid(validation, node, &format!("should be greater than {shown}"));
        } else if number < min {
            let detail = format!("should be greater than or equal to {shown}");
            invalid(validation, node, &detail);
        }
    }
    if let Some(max) = checks.maximum {
        let is_native = in_range(validation, max, "Maximum boundary");
        let (max, shown) = as_bound(max, is_native);
        if checks.exclusive_maximum && number >= max {
            invalid(validation, node, &format!("should be less than {shown}"));
        } else if number > max {
            let detail = format!("should be less than or equal to {shown}");
            invalid(validation, node, &detail);
        }
    }
}

/// Returns the type and format of a schema whose range a number is beyond.
///
/// Upstream: `IsValueValidAgainstRange`
fn out_of_range(schema: &Schema, number: f64, is_int64: bool) -> Option<String> {
    let format = schema.checks.format.as_str();
    let is_wrong = match schema.of.filter(|_| !schema.int_or_string)? {
        SchemaType::Integer if format == "int32" => {
            !is_int64 || number.abs() > INT32_END || number == INT32_END
        }
        SchemaType::Integer => !is_int64,
        SchemaType::Number if format == "float" => number.abs() > f64::from(f32::MAX),
        _ => false,
    };
    let of = schema.of.map_or("", SchemaType::name);
    is_wrong.then(|| match format {
        "int32" | "int64" | "float" => format!("{of} with format {format}"),
        _ => format!("{of} (default format)"),
    })
}

/// Upstream: `MultipleOf`
fn is_multiple(number: f64, factor: f64) -> bool {
    let quotient = if factor < 1.0 {
        1.0 / factor * number
    } else {
        number / factor
    };
    is_whole(quotient)
}

/// Upstream: `IsFloat64AJSONInteger` of go-openapi's `swag`, which compares with the truncated number.
fn is_whole(number: f64) -> bool {
    if number.is_nan() || number.abs() > SAFE_INTEGER_MAX {
        return false;
    }
    let whole = number.trunc();
    let difference = (number - whole).abs();
    if difference == 0.0 {
        return true;
    }
    number >= 0.0 && whole != 0.0 && difference / (number + whole) < MULTIPLE_TOLERANCE
}

fn invalid(validation: &mut Validation, node: Node<'_>, what: &str) {
    let detail = format!("{} in body {what}", node.path);
    let error = match node.value {
        Value::Number(_) => FieldError::invalid_text(node.path, &fmt::value(node.value), &detail),
        value => FieldError::invalid(node.path, value, &detail),
    };
    validation.push(error);
}

/// Returns true if a double is a 64-bit integer.
pub(super) fn is_int64(number: f64) -> bool {
    number.fract() == 0.0 && (-INT64_END..INT64_END).contains(&number)
}
