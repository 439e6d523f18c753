//! The fields of an object, as a set.
//!
//! Upstream: `toFieldSetWalker` and `EnsureNamedFieldsAreMembers` of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::items;
use super::types::{Form, ListType, MapType, Relation, TypeRef};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;

/// Returns the fields of an object: its leaves, the members of its maps, the elements of its lists.
/// Members named by the schema are in the set only if they are leaves.
pub(crate) fn field_set(of: TypeRef<'_>, value: &Value) -> Set {
    part(of, value).1
}

/// Returns true if a part is a leaf, and the set of fields below it.
fn part(of: TypeRef<'_>, value: &Value) -> (bool, Set) {
    match of.form(Some(value)) {
        Form::Scalar(_) => (true, Set::EMPTY),
        Form::Map(map) if map.atomic => (true, Set::EMPTY),
        Form::Map(map) => (
            false,
            value.as_object().map_or(Set::EMPTY, |v| members(map, v)),
        ),
        Form::List(list) if matches!(list.relation, Relation::Atomic) => (true, Set::EMPTY),
        Form::List(list) => (
            false,
            value.as_array().map_or(Set::EMPTY, |v| elements(list, v)),
        ),
    }
}

fn members(map: MapType<'_>, members: &Map<String, Value>) -> Set {
    let mut set = Set::EMPTY;
    for (name, value) in members {
        let (single, parts) = part(map.found(name), value);
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let member = single || empty || map.field(name).is_none();
        set.add(PathElement::field(name), member, parts);
    }
    set
}

fn elements(list: ListType<'_>, items: &[Value]) -> Set {
    let mut found: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = items::element(list, item) {
            // The parts of duplicate elements have no owner.
            let twice = |item: &mut Option<&Value>| *item = None;
            found.entry(element).and_modify(twice).or_insert(Some(item));
        }
    }
    let mut set = Set::EMPTY;
    for (element, item) in found {
        let parts = item.map_or(Set::EMPTY, |item| part(list.element, item).1);
        set.add(element, true, parts);
    }
    set
}

/// Adds all members that the schema names and that have descendants in the set.
pub(crate) fn with_named_fields(set: &Set, of: TypeRef<'_>) -> Set {
    let form = of.form(None);
    set.map(|node| {
        let (named, below) = match (&node.element, form) {
            (PathElement::Field(name), Form::Map(map)) => {
                (map.field(name).is_some(), map.found(name))
            }
            (PathElement::Key(_), Form::List(list)) => (false, list.element),
            _ => (false, TypeRef::Untyped),
        };
        let named = named && !node.children.is_empty();
        (
            node.member || named,
            with_named_fields(&node.children, below),
        )
    })
}
