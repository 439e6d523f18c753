//! Objects embedded in a custom resource: `x-kubernetes-embedded-resource`.
//!
//! Upstream: `schemaobjectmeta.Validate`.

use serde_json::{Map, Value};

use super::node::join;
use crate::custom::Schema;
use crate::status::FieldError;
use crate::validation::letter_label;
use crate::validation::tables::embedded_metadata;

/// Collects the errors in the type and the metadata of embedded objects.
pub(super) fn validate(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            if schema.embedded {
                object(members, value, path, errors);
            }
            for (name, value) in members {
                if let Some(inner) = schema.properties.get(name) {
                    validate(inner, value, &join(path, name), errors);
                } else if let Some(inner) = schema.member(name) {
                    validate(inner, value, &format!("{path}[{name}]"), errors);
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

/// Upstream: `validateEmbeddedResource`
fn object(members: &Map<String, Value>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let names = ["apiVersion", "kind"];
    let missing = names.iter().filter(|name| !members.contains_key(**name));
    errors.extend(missing.map(|name| FieldError::required(join(path, name), "")));
    for name in names {
        let Some(found) = members.get(name) else {
            continue;
        };
        let at = join(path, name);
        let detail = match found.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(version) if name == "apiVersion" => (version.matches('/').count() > 1)
                .then(|| format!("unexpected GroupVersion string: {version}")),
            Some(kind) => {
                let wrong = letter_label(&kind.to_lowercase()).join(",");
                let start = "may have mixed case, but should otherwise match: ";
                (!wrong.is_empty()).then(|| format!("{start}{wrong}"))
            }
        };
        errors.extend(detail.map(|detail| FieldError::invalid(at, found, &detail)));
    }
    if members.contains_key("metadata") {
        errors.extend(embedded_metadata(value, path));
    }
}
