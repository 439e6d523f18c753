//! Checks of strings and numbers.
//!
//! Upstream: `stringValidator`, `formatValidator` and `numberValidator` of kube-openapi.

use serde_json::{Value, json};

use super::node::{Node, Validation, exceeds, is_below};
use crate::custom::{Schema, SchemaType};
use crate::go::strfmt;
use crate::status::FieldError;

/// The largest distance of a quotient from an integer that counts as a multiple.
const MULTIPLE_TOLERANCE: f64 = 1e-9;

/// The smallest power of two beyond the 64-bit integers.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

pub(super) fn string(validation: &mut Validation, schema: &Schema, node: Node<'_>, found: &str) {
    let checks = &schema.checks;
    let length = found.chars().count();
    if let Some(max) = checks.max_length.filter(|max| is_below(*max, length)) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        validation
            .errors
            .push(FieldError::too_long(node.path, &detail));
    }
    if let Some(min) = checks.min_length.filter(|min| exceeds(*min, length)) {
        invalid(
            validation,
            node,
            &format!("should be at least {min} chars long"),
        );
    }
    if let Some(pattern) = &checks.pattern
        && !pattern.is_match(found)
    {
        invalid(
            validation,
            node,
            &format!("should match '{}'", pattern.as_str()),
        );
    }
    let of_text = schema.of == Some(SchemaType::String) || schema.of.is_none();
    if of_text && !strfmt::matches(&checks.format, found) {
        let detail = format!(
            "{} in body must be of type {}: {found:?}",
            validation.shown(node.path),
            checks.format
        );
        validation
            .errors
            .push(FieldError::wrong_type(node.path, found, &detail));
    }
}

pub(super) fn number(validation: &mut Validation, schema: &Schema, node: Node<'_>) {
    let Some(number) = node.value.as_f64() else {
        return;
    };
    let checks = &schema.checks;
    if schema.of == Some(SchemaType::Integer) {
        let is_within = match checks.format.as_str() {
            "int32" => {
                let found = as_int64(node.value);
                found.is_some_and(|found| i32::try_from(found).is_ok())
            }
            _ => as_int64(node.value).is_some(),
        };
        if !is_within {
            let format = match checks.format.as_str() {
                "" => "(default format)".to_owned(),
                named => format!("with format {named}"),
            };
            let detail = format!(
                "Checked value must be of type integer {format} in {}",
                validation.shown(node.path)
            );
            validation
                .errors
                .push(FieldError::invalid("<nil>", &json!(""), &detail));
        }
    }
    if let Some(factor) = checks.multiple_of {
        let quotient = number / factor;
        if (quotient - quotient.round()).abs() > MULTIPLE_TOLERANCE {
            invalid(
                validation,
                node,
                &format!("should be a multiple of {factor}"),
            );
        }
    }
    if let Some(max) = checks.maximum {
        if checks.exclusive_maximum && number >= max {
            invalid(validation, node, &format!("should be less than {max}"));
        } else if number > max {
            invalid(
                validation,
                node,
                &format!("should be less than or equal to {max}"),
            );
        }
    }
    if let Some(min) = checks.minimum {
        if checks.exclusive_minimum && number <= min {
            invalid(validation, node, &format!("should be greater than {min}"));
        } else if number < min {
            invalid(
                validation,
                node,
                &format!("should be greater than or equal to {min}"),
            );
        }
    }
}

fn invalid(validation: &mut Validation, node: Node<'_>, what: &str) {
    let detail = format!("{} in body {what}", validation.shown(node.path));
    let error = match node.value.as_f64().filter(|number| is_int64(*number)) {
        // A whole number appears without a fraction.
        Some(whole) if node.value.is_f64() => {
            FieldError::invalid_text(node.path, &whole.to_string(), &detail)
        }
        _ => FieldError::invalid(node.path, node.value, &detail),
    };
    validation.errors.push(error);
}

/// Returns true if a double is a 64-bit integer.
pub(super) fn is_int64(number: f64) -> bool {
    number.fract() == 0.0 && (-INT64_END..INT64_END).contains(&number)
}

fn as_int64(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| is_int64(*number))?;
        format!("{number}").parse().ok()
    })
}
