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
            let is_keyed = |item: &Value| item.is_null() || item.is_object();
            let wrong = items.iter().position(|item| !is_keyed(item));
            match (schema.list_type, wrong) {
                (ListType::Atomic, _) => {}
                (ListType::Set, _) => repeated(items, path, errors),
                (ListType::Map, None) => {
                    let keys: Vec<Value> =
                        items.iter().map(|it| keys(&schema.list_keys, it)).collect();
                    repeated(&keys, path, errors);
                }
                (ListType::Map, Some(index)) => {
                    let detail = "must be an object for an array of list-type map";
                    let field = format!("{path}[{index}]");
                    errors.push(FieldError::invalid(field, &items[index], detail));
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
                if let Some(inner) = schema.properties.get(name) {
                    collect(inner, value, &join(path, name), errors);
                } else if let Some(inner) = schema.member(name) {
                    collect(inner, value, &format!("{path}[{name}]"), errors);
                }
            }
        }
        _ => {}
    }
}

/// Reports each value that occurs several times, at its second place.
///
/// Upstream: `validateListSet`
fn repeated(values: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, value) in values.iter().enumerate() {
        let earlier = values[..index].iter().filter(|earlier| *earlier == value);
        if earlier.count() == 1 {
            let field = format!("{path}[{index}]");
            errors.push(FieldError::duplicate(field, value));
        }
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
