//! Sets and maps in lists: `x-kubernetes-list-type`.
//!
//! Upstream: `ValidateListSetsAndMaps`.

use serde_json::{Map, Value};

use super::node::join;
use crate::custom::{ListType, Schema};
use crate::status::FieldError;

/// Returns the errors of repeated elements.
pub(super) fn duplicates(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    collect(schema, value, path, &mut errors);
    errors
}

fn collect(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => {
            let identity = |item: &Value| match schema.list_type {
                ListType::Atomic => None,
                ListType::Set => Some(item.clone()),
                ListType::Map => Some(keys(&schema.list_keys, item)),
            };
            let mut seen: Vec<(Value, bool)> = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let Some(identity) = identity(item) else {
                    break;
                };
                match seen.iter_mut().find(|(known, _)| *known == identity) {
                    None => seen.push((identity, false)),
                    Some((_, is_told)) if *is_told => {}
                    Some((_, is_told)) => {
                        *is_told = true;
                        let field = format!("{path}[{index}]");
                        errors.push(FieldError::duplicate(field, &identity));
                    }
                }
            }
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    collect(inner, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(inner) = schema.member(name) {
                    collect(inner, value, &join(path, name), errors);
                }
            }
        }
        _ => {}
    }
}

/// Returns true if two elements have the same keys.
pub(super) fn has_same_keys(names: &[String], one: &Value, other: &Value) -> bool {
    keys(names, one) == keys(names, other)
}

fn keys(names: &[String], item: &Value) -> Value {
    let found = names
        .iter()
        .filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    Value::Object(found.collect::<Map<_, _>>())
}
