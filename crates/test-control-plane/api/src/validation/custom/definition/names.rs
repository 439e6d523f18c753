//! Validation of a definition's names.
//!
//! Upstream: `ValidateCustomResourceDefinitionNames`.

use serde_json::{Value, json};

use crate::custom::texts;
use crate::members::text;
use crate::status::FieldError;
use crate::validation::letter_label;

pub(super) fn check(names: &Value, errors: &mut Vec<FieldError>) {
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(names, member).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{member}"), ""));
        }
    }
    for member in ["plural", "singular"] {
        label(&format!("spec.names.{member}"), text(names, member), errors);
    }
    mixed("kind", text(names, "kind"), errors);
    for (index, name) in texts(names, "shortNames").iter().enumerate() {
        label(&format!("spec.names.shortNames[{index}]"), name, errors);
    }
    mixed("listKind", text(names, "listKind"), errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if kind == list_kind && !kind.is_empty() {
        let detail = "kind and listKind may not be the same";
        let field = "spec.names.listKind";
        errors.push(FieldError::invalid(field, &json!(kind), detail));
    }
    for (index, name) in texts(names, "categories").iter().enumerate() {
        label(&format!("spec.names.categories[{index}]"), name, errors);
    }
}

fn label(field: &str, name: &str, errors: &mut Vec<FieldError>) {
    for message in letter_label(name) {
        if !name.is_empty() {
            errors.push(FieldError::invalid(field, &json!(name), message));
        }
    }
}

fn mixed(member: &str, name: &str, errors: &mut Vec<FieldError>) {
    for message in letter_label(&name.to_lowercase()) {
        if !name.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {message}");
            let field = format!("spec.names.{member}");
            errors.push(FieldError::invalid(field, &json!(name), &detail));
        }
    }
}
