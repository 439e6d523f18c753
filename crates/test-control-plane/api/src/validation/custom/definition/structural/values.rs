//! The rules on patterns and defaults.

use serde_json::{Value, json};

use super::inner::each_inner;
use crate::custom::{Schema, prune};
use crate::go::pattern;
use crate::members::text;
use crate::status::FieldError;
use crate::validation::custom::resource::errors_of_default;

pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let source = text(schema, "pattern");
    if source.is_empty() {
        return;
    }
    if let Err(error) = pattern::compile(source) {
        // The last line gives the reason; those before it show the place.
        let shown = error.to_string();
        let why = shown.lines().last().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(
            format!("{at}.pattern"),
            &json!(source),
            &detail,
        ));
    }
}

/// Checks that each default meets its own schema.
///
/// Upstream: `ValidateDefaults`
pub(super) fn check_defaults(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let field = format!("{at}.default");
        let read = Schema::read(schema);
        if prune(&read, &mut default.clone()).is_empty() {
            errors.extend(errors_of_default(&read, default, &field));
        } else {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(field, default, detail));
        }
    }
    each_inner(schema, at, &mut |inner, at| {
        check_defaults(inner, at, errors);
    });
}
