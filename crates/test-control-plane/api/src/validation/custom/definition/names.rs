//! Validation of a definition's names.
//!
//! Upstream: `ValidateCustomResourceDefinitionNames`.

use serde_json::{Value, json};

use super::texts::invalid_label;
use crate::custom::texts;
use crate::members::text;
use crate::status::FieldError;
use crate::validation::letter_label;

/// The start of errors about kinds.
const MIXED: &str = "may have mixed case, but should otherwise match: ";

/// Requires the names in a spec.
pub(super) fn check_present(names: &Value, errors: &mut Vec<FieldError>) {
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(names, member).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{member}"), ""));
        }
    }
}

pub(super) fn check(names: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (member, start) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", MIXED),
        ("listKind", MIXED),
    ] {
        let name = text(names, member);
        let label = if start.is_empty() {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        if !name.is_empty() {
            invalid_label(
                &format!("{at}.{member}"),
                name,
                start,
                &letter_label(&label),
                errors,
            );
        }
    }
    let labels = |member: &str, errors: &mut Vec<FieldError>| {
        for (index, name) in texts(names, member).iter().enumerate() {
            invalid_label(
                &format!("{at}.{member}[{index}]"),
                name,
                "",
                &letter_label(name),
                errors,
            );
        }
    };
    labels("shortNames", errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if kind == list_kind && !kind.is_empty() {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            format!("{at}.listKind"),
            &json!(kind),
            detail,
        ));
    }
    labels("categories", errors);
}
