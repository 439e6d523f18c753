//! Merging of a configuration into an object.
//!
//! Upstream: `mergingWalker` of structured-merge-diff.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::items;
use super::types::{Form, ListType, MapType, Relation, TypeRef};
use crate::managed_fields::path::PathElement;

/// Merges `right` into the object `left`. Removes nothing from it.
///
/// Shared list elements follow the order of `right`. Elements found only in `left` keep their
/// relative positions.
pub(crate) fn merge(of: TypeRef<'_>, left: &Value, right: &Value) -> Value {
    part(of, Some(left), Some(right)).unwrap_or(Value::Null)
}

/// Merges a part; `None` if nothing is left of it.
fn part(of: TypeRef<'_>, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    let (Some(_), Some(value)) = (left, right) else {
        return right.or(left).cloned();
    };
    match of.form(right) {
        Form::Scalar(_) => right.cloned(),
        Form::Map(map) => {
            let before = left.and_then(Value::as_object).filter(|v| !v.is_empty());
            let after = value.as_object().filter(|v| !v.is_empty());
            if map.atomic || (before.is_none() && after.is_none()) {
                return right.cloned();
            }
            maps(map, before, after)
        }
        Form::List(list) => {
            let before = left.and_then(Value::as_array).filter(|v| !v.is_empty());
            let after = value.as_array().filter(|v| !v.is_empty());
            if matches!(list.relation, Relation::Atomic) || (before.is_none() && after.is_none()) {
                return right.cloned();
            }
            let empty = Vec::new();
            lists(list, before.unwrap_or(&empty), after.unwrap_or(&empty))
        }
    }
}

fn maps(
    map: MapType<'_>,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
) -> Option<Value> {
    let mut merged = Map::new();
    for (name, value) in left.into_iter().flatten() {
        let after = right.and_then(|right| right.get(name));
        if let Some(value) = part(map.found(name), Some(value), after) {
            merged.insert(name.clone(), value);
        }
    }
    for (name, value) in right.into_iter().flatten() {
        if left.is_none_or(|left| !left.contains_key(name))
            && let Some(value) = part(map.found(name), None, Some(value))
        {
            merged.insert(name.clone(), value);
        }
    }
    Some(merged)
        .filter(|merged| !merged.is_empty())
        .map(Value::Object)
}

/// A list with its path elements. Elements without one are left out.
struct Indexed<'a> {
    order: Vec<(PathElement, &'a Value)>,
    /// The elements by path element; `None` for duplicates.
    found: BTreeMap<PathElement, Option<&'a Value>>,
}

fn index<'a>(list: ListType<'_>, items: &'a [Value]) -> Indexed<'a> {
    let mut order = Vec::with_capacity(items.len());
    let mut found: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for item in items {
        let Ok(element) = items::element(list, item) else {
            continue;
        };
        let twice = |item: &mut Option<&Value>| *item = None;
        found
            .entry(element.clone())
            .and_modify(twice)
            .or_insert(Some(item));
        order.push((element, item));
    }
    Indexed { order, found }
}

fn lists(list: ListType<'_>, left: &[Value], right: &[Value]) -> Option<Value> {
    let (left, right) = (index(list, left), index(list, right));
    let shared = |element: &PathElement| left.found.contains_key(element);
    let mut shared = right
        .order
        .iter()
        .map(|(element, _)| element)
        .filter(|e| shared(e));
    let mut next_shared = shared.next();
    let mut merged_right: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::with_capacity(left.order.len().max(right.order.len()));
    let (mut l, mut r) = (0, 0);
    loop {
        let (before, after) = (left.order.get(l), right.order.get(r));
        if before.is_none() && after.is_none() {
            break;
        }
        if let (Some((element, _)), Some((wanted, _))) = (before, after)
            && element != wanted
            && right.found.contains_key(element)
            && next_shared.is_some_and(|next| next != element)
        {
            // The right list decides this element's position.
            l += 1;
            continue;
        }
        if let Some((element, item)) = before
            && after.is_none_or(|(wanted, _)| wanted != element)
        {
            if !right.found.contains_key(element) {
                merged.push((*item).clone());
                l += 1;
                continue;
            }
            if merged_right.contains(element) {
                l += 1;
            }
        }
        let Some((element, item)) = after else {
            continue;
        };
        merged_right.insert(element);
        let old = left.found.get(element).copied().flatten();
        merged.extend(part(list.element, old, Some(item)));
        if before.is_some_and(|(same, _)| same == element) {
            l += 1;
        }
        r += 1;
        if next_shared == Some(element) {
            next_shared = shared.next();
        }
    }
    Some(merged)
        .filter(|merged| !merged.is_empty())
        .map(Value::Array)
}
