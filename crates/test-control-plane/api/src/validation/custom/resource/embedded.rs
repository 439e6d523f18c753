//! Objects embedded in a custom resource: `x-kubernetes-embedded-resource`.
//!
//! Upstream: `schemaobjectmeta.Validate`.

use serde_json::{Map, Value, json};

use super::node::join;
use crate::custom::Schema;
use crate::members::text;
use crate::status::FieldError;
use crate::validation::letter_label;
use crate::validation::tables::embedded_metadata;

/// Collects the errors in the type and the metadata of embedded objects.
pub(super) fn validate(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            if schema.embedded && !path.is_empty() {
                object(members, value, path, errors);
            }
            for (name, value) in members {
                if let Some(inner) = schema.member(name) {
                    validate(inner, value, &join(path, name), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    validate(inner, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn object(members: &Map<String, Value>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (api_version, kind) = (text(value, "apiVersion"), text(value, "kind"));
    let at = |name: &str| join(path, name);
    if api_version.is_empty() {
        errors.push(FieldError::required(at("apiVersion"), ""));
    } else if api_version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {api_version}");
        errors.push(FieldError::invalid(
            at("apiVersion"),
            &json!(api_version),
            &detail,
        ));
    }
    if kind.is_empty() {
        errors.push(FieldError::required(at("kind"), ""));
    }
    for message in letter_label(&kind.to_lowercase()) {
        if !kind.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {message}");
            errors.push(FieldError::invalid(at("kind"), &json!(kind), &detail));
        }
    }
    if members.contains_key("metadata") {
        errors.extend(embedded_metadata(value, path));
    }
}
