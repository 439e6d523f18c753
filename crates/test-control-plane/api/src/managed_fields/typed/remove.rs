//! Removal of fields from an object.
//!
//! Upstream: `removingWalker` of structured-merge-diff.

use serde_json::{Map, Value};

use super::items;
use super::types::{Form, ListType, MapType, Relation, TypeRef};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;

/// Removes `fields` from the value. An object or a list that loses all its fields or elements turns
/// into null.
pub(crate) fn remove(of: TypeRef<'_>, value: &Value, fields: &Set) -> Value {
    match (of.form(Some(value)), value) {
        (Form::Scalar(_), value) => value.clone(),
        (Form::Map(map), Value::Object(value)) if !map.atomic => members(map, value, fields),
        (Form::List(list), Value::Array(value)) if !matches!(list.relation, Relation::Atomic) => {
            elements(list, value, fields)
        }
        // Removing part of an atomic value removes all of it.
        (Form::Map(_) | Form::List(_), _) => Value::Null,
    }
}

/// Removes fields inside of a value, which stays: an object or a list becomes empty at most.
fn remove_inside(of: TypeRef<'_>, value: &Value, fields: &Set) -> Value {
    match (remove(of, value, fields), value) {
        (Value::Null, Value::Object(_)) => Value::Object(Map::new()),
        (Value::Null, Value::Array(_)) => Value::Array(Vec::new()),
        (rest, _) => rest,
    }
}

fn members(map: MapType<'_>, members: &Map<String, Value>, fields: &Set) -> Value {
    let kept: Map<String, Value> = members
        .iter()
        .filter_map(|(name, value)| {
            let value = match fields.get(&PathElement::field(name)) {
                Some(node) if node.member => return None,
                Some(node) => remove_inside(map.found(name), value, &node.children),
                None => value.clone(),
            };
            Some((name.clone(), value))
        })
        .collect();
    if kept.is_empty() {
        Value::Null
    } else {
        Value::Object(kept)
    }
}

fn elements(list: ListType<'_>, items: &[Value], fields: &Set) -> Value {
    let kept: Vec<Value> = items
        .iter()
        .filter_map(|item| {
            let element = items::element(list, item).ok();
            match element.and_then(|element| fields.get(&element)) {
                Some(node) if node.member => None,
                Some(node) => Some(remove_inside(list.element, item, &node.children)),
                None => Some(item.clone()),
            }
        })
        .collect();
    if kept.is_empty() {
        Value::Null
    } else {
        Value::Array(kept)
    }
}
