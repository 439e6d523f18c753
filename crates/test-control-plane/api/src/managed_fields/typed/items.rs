//! The path elements of list elements.

use kube_apimachinery::schema::{Field, Kind, ListKey, Shape};
use serde_json::Value;

use super::types::{ListType, Relation, key_default};
use crate::managed_fields::path::{Atom, PathElement};

/// A reason why a list element has no path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ItemError {
    /// The list is atomic.
    #[error("invalid indexing of non-associative list")]
    Atomic,
    /// An element of a keyed list is null.
    #[error("associative list with keys may not have a null element")]
    KeyedNull,
    /// An element of a keyed list is not an object.
    #[error("associative list with keys may not have non-map elements")]
    KeyedNoObject,
    /// An element lacks all keys, and none has a default.
    #[error(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't \
         have default values for any key fields)",
        quoted(.0)
    )]
    NoKey(Vec<String>),
    /// An element of a set is an object.
    #[error("associative list without keys has an element that's a map type")]
    SetObject,
    /// An element of a set is a list.
    #[error("not supported: associative list with lists as elements")]
    SetList,
    /// An element of a set is null.
    #[error("associative list without keys has an element that's an explicit null")]
    SetNull,
}

/// Returns the path element of a list element.
///
/// # Errors
///
/// The element can't be identified.
pub(super) fn element(list: ListType<'_>, item: &Value) -> Result<PathElement, ItemError> {
    match list.relation {
        Relation::Atomic => Err(ItemError::Atomic),
        Relation::Set => match item {
            Value::Object(_) => Err(ItemError::SetObject),
            Value::Array(_) => Err(ItemError::SetList),
            Value::Null => Err(ItemError::SetNull),
            value => Ok(PathElement::Value(Atom(value.clone()))),
        },
        Relation::Keyed(keys) => keyed(item, keys, |key| key.name, |key| default(list, key)),
        Relation::Named(keys) => keyed(item, keys, String::as_str, |key| {
            key_default(list.element, key)
        }),
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(" ")
}

/// Returns the path element of an element that members identify.
fn keyed<K>(
    item: &Value,
    keys: &[K],
    name: impl Fn(&K) -> &str,
    default: impl Fn(&K) -> Option<Value>,
) -> Result<PathElement, ItemError> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err(ItemError::KeyedNull),
        _ => return Err(ItemError::KeyedNoObject),
    };
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        // Elements that lack a key differ from those that have it.
        let value = members.get(name(key)).cloned().or_else(|| default(key));
        found.extend(value.map(|value| (name(key).into(), Atom(value))));
    }
    if found.is_empty() {
        let names = keys.iter().map(|key| name(key).to_owned());
        return Err(ItemError::NoKey(names.collect()));
    }
    found.sort();
    Ok(PathElement::Key(found.into()))
}

/// Returns the default of a missing key. Members that Go writes even if zero default to zero.
fn default(list: ListType<'_>, key: &ListKey) -> Option<Value> {
    if let Some(text) = key.default {
        return Some(Value::from(text));
    }
    let field = list.element_type()?.field(key.name)?;
    field.always.then(|| zero(field)).flatten()
}

fn zero(field: &Field) -> Option<Value> {
    match (field.shape, field.kind) {
        (Shape::Plain, Kind::String(_)) => Some(Value::from("")),
        (Shape::Plain, Kind::Int32 | Kind::Int64) => Some(Value::from(0)),
        (Shape::Plain, Kind::Bool) => Some(Value::from(false)),
        _ => None,
    }
}
