//! Errors of single texts.

use serde_json::json;

use crate::status::FieldError;

/// Reports a text with all reasons in one error.
pub(super) fn invalid_label(
    field: &str,
    found: &str,
    start: &str,
    wrong: &[&str],
    errors: &mut Vec<FieldError>,
) {
    if !wrong.is_empty() {
        let detail = format!("{start}{}", wrong.join(","));
        errors.push(FieldError::invalid(field, &json!(found), &detail));
    }
}

/// Requires a text to be one of several.
///
/// Upstream: `validateEnumStrings`
pub(super) fn one_of(field: &str, found: &str, names: &[&str], errors: &mut Vec<FieldError>) {
    if found.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !names.contains(&found) {
        errors.push(FieldError::not_supported(field, &json!(found), names));
    }
}
