//! Comparison of two objects, as sets of fields.
//!
//! Upstream: `compareWalker` of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::items;
use super::types::{Form, ListType, MapType, Relation, TypeRef};
use crate::managed_fields::path::{PathElement, is_same};
use crate::managed_fields::set::Set;

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Fields only in the right object.
    pub added: Set,
    /// Fields in both objects, with different values.
    pub modified: Set,
    /// Fields only in the left object.
    pub removed: Set,
}

/// The set that contains a field itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    Added,
    Modified,
    Removed,
}

/// Compares two objects of one type.
pub(crate) fn compare(of: TypeRef<'_>, left: &Value, right: &Value) -> Comparison {
    part(of, Some(left), Some(right)).1
}

impl Comparison {
    /// Returns the fields that the right object adds or modifies.
    pub(crate) fn changed(&self) -> Set {
        self.modified.union(&self.added)
    }

    fn add(&mut self, element: PathElement, (mark, parts): (Mark, Self)) {
        let sets = [
            (&mut self.added, parts.added, Mark::Added),
            (&mut self.modified, parts.modified, Mark::Modified),
            (&mut self.removed, parts.removed, Mark::Removed),
        ];
        let mut element = Some(element);
        let mut left = sets
            .iter()
            .filter(|(_, parts, is)| mark == *is || !parts.is_empty())
            .count();
        for (set, parts, is) in sets {
            if mark != is && parts.is_empty() {
                continue;
            }
            left -= 1;
            let element = if left == 0 {
                element.take()
            } else {
                element.clone()
            };
            if let Some(element) = element {
                set.add(element, mark == is, parts);
            }
        }
    }

    fn union(&self, other: &Self) -> Self {
        Self {
            added: self.added.union(&other.added),
            modified: self.modified.union(&other.modified),
            removed: self.removed.union(&other.removed),
        }
    }
}

/// Compares a value and its parts.
fn part(of: TypeRef<'_>, left: Option<&Value>, right: Option<&Value>) -> (Mark, Comparison) {
    let (left_form, right_form) = (of.form(left), of.form(right));
    if let (Some(before), Some(after)) = (left, right)
        && of.is_open()
        && std::mem::discriminant(&left_form) != std::mem::discriminant(&right_form)
    {
        let (_, taken) = with_form(left_form, left, right);
        let (_, given) = with_form(right_form, left, right);
        return (leaf(Some(before), Some(after)), taken.union(&given));
    }
    with_form(
        if right.is_some() {
            right_form
        } else {
            left_form
        },
        left,
        right,
    )
}

fn with_form(form: Form<'_>, left: Option<&Value>, right: Option<&Value>) -> (Mark, Comparison) {
    let parts = match form {
        Form::Scalar(_) => None,
        Form::Map(map) => maps(map, object(left), object(right)),
        Form::List(list) => lists(list, array(left), array(right)),
    };
    match parts {
        None => (leaf(left, right), Comparison::default()),
        Some(parts) => {
            let mark = match (left, right) {
                (None, _) => Mark::Added,
                (_, None) => Mark::Removed,
                _ => Mark::None,
            };
            (mark, parts)
        }
    }
}

fn leaf(left: Option<&Value>, right: Option<&Value>) -> Mark {
    match (left, right) {
        (None, _) => Mark::Added,
        (_, None) => Mark::Removed,
        (Some(left), Some(right)) if !is_same(left, right) => Mark::Modified,
        _ => Mark::None,
    }
}

fn object(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value?.as_object().filter(|members| !members.is_empty())
}

fn array(value: Option<&Value>) -> Option<&Vec<Value>> {
    value?.as_array().filter(|items| !items.is_empty())
}

/// Compares the members of two objects; `None` if they are atomic.
fn maps(
    map: MapType<'_>,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
) -> Option<Comparison> {
    if map.atomic || (left.is_none() && right.is_none()) {
        return None;
    }
    let mut parts = Comparison::default();
    for (name, value) in right.into_iter().flatten() {
        let before = left.and_then(|left| left.get(name));
        let found = part(map.found(name), before, Some(value));
        parts.add(PathElement::field(name), found);
    }
    for (name, value) in left.into_iter().flatten() {
        if right.is_none_or(|right| !right.contains_key(name)) {
            let found = part(map.found(name), Some(value), None);
            parts.add(PathElement::field(name), found);
        }
    }
    Some(parts)
}

/// The elements of two lists with the same path element.
#[derive(Default)]
struct Same<'a> {
    left: Vec<&'a Value>,
    right: Vec<&'a Value>,
}

/// Compares the elements of two lists; `None` if they are atomic.
fn lists(
    list: ListType<'_>,
    left: Option<&Vec<Value>>,
    right: Option<&Vec<Value>>,
) -> Option<Comparison> {
    if matches!(list.relation, Relation::Atomic) || (left.is_none() && right.is_none()) {
        return None;
    }
    let mut same: BTreeMap<PathElement, Same<'_>> = BTreeMap::new();
    for item in left.into_iter().flatten() {
        if let Ok(element) = items::element(list, item) {
            same.entry(element).or_default().left.push(item);
        }
    }
    for item in right.into_iter().flatten() {
        if let Ok(element) = items::element(list, item) {
            same.entry(element).or_default().right.push(item);
        }
    }
    let mut parts = Comparison::default();
    for (element, Same { left, right }) in same {
        let nothing = Comparison::default();
        match (left.as_slice(), right.as_slice()) {
            ([_, _, ..], [_, _, ..]) => {
                let is_equal = left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| is_same(left, right));
                let mark = if is_equal { Mark::None } else { Mark::Modified };
                parts.add(element, (mark, nothing));
            }
            // Duplicate elements are owned together, and their parts have no owner.
            ([_, _, ..], rest) => {
                if let Some(item) = rest.first() {
                    parts.add(element.clone(), part(list.element, None, Some(item)));
                }
                parts.add(element, (Mark::Removed, nothing));
            }
            (rest, [_, _, ..]) => {
                if let Some(item) = rest.first() {
                    parts.add(element.clone(), part(list.element, Some(item), None));
                }
                parts.add(element, (Mark::Added, nothing));
            }
            (left, right) => {
                let (left, right) = (left.first().copied(), right.first().copied());
                parts.add(element, part(list.element, left, right));
            }
        }
    }
    Some(parts)
}
