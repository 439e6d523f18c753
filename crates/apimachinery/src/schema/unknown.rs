//! Fields that the schema doesn't know: listing, removal and comparison.

use serde_json::Value;

use super::path::Path;
use super::path::PathStep;
use super::table::Kind;
use super::table::TypeName;
use super::words::Shape;

/// Treatment of fields that the schema doesn't know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownMembers {
    /// Drop them, as Go's decoder does.
    Drop,
    /// Keep them unchanged, at every level.
    Keep,
}

/// Returns the fields of `value`, an object of the type `of`, that the type and its nested
/// types don't know, with their paths, sorted by path. The contents of an unknown field are not
/// listed separately. Values of the wrong type, and values of a type that the schema lacks, have no
/// unknown fields.
pub fn unknown_members<'a, 't>(
    of: impl Into<TypeName<'t>>,
    value: &'a Value,
) -> Vec<(Path, &'a Value)> {
    let mut found = Vec::new();
    walk_object(of.into(), value, &mut Path::default(), &mut found);
    found
}

fn walk_object<'a>(
    of: TypeName<'_>,
    value: &'a Value,
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let (Some(found_type), Value::Object(members)) = (of.find(), value) else {
        return;
    };
    for (name, member) in members {
        path.push(PathStep::Member(name.clone()));
        match found_type.field(name) {
            None => found.push((path.clone(), member)),
            Some(field) => {
                if let Kind::Struct(of) = field.kind {
                    walk_member(field.shape, of, member, path, found);
                }
            }
        }
        path.pop();
    }
}

fn walk_member<'a>(
    shape: Shape,
    of: TypeName<'_>,
    value: &'a Value,
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let inner: Vec<(PathStep, &Value)> = match (shape, value) {
        (Shape::Plain | Shape::Pointer, value) => {
            return walk_object(of, value, path, found);
        }
        (Shape::List, Value::Array(elements)) => elements
            .iter()
            .enumerate()
            .map(|(index, element)| (PathStep::Index(index), element))
            .collect(),
        (Shape::Map, Value::Object(members)) => members
            .iter()
            .map(|(key, member)| (PathStep::Member(key.clone()), member))
            .collect(),
        (Shape::List | Shape::Map, _) => return,
    };
    for (step, value) in inner {
        path.push(step);
        walk_object(of, value, path, found);
        path.pop();
    }
}

/// Removes the fields that [`unknown_members`] lists, and leaves the rest unchanged. Returns
/// whether it removed any.
pub fn drop_unknown_members<'t>(of: impl Into<TypeName<'t>>, value: &mut Value) -> bool {
    let (Some(found_type), Value::Object(members)) = (of.into().find(), value) else {
        return false;
    };
    let count = members.len();
    members.retain(|name, _| found_type.field(name).is_some());
    let mut is_any_dropped = members.len() < count;
    for (name, member) in members {
        let Some(field) = found_type.field(name) else {
            continue;
        };
        if let Kind::Struct(of) = field.kind {
            for object in objects_of(field.shape, member) {
                is_any_dropped |= drop_unknown_members(of, object);
            }
        }
    }
    is_any_dropped
}

fn objects_of(shape: Shape, value: &mut Value) -> Vec<&mut Value> {
    match (shape, value) {
        (Shape::Plain | Shape::Pointer, value) => vec![value],
        (Shape::List, Value::Array(elements)) => elements.iter_mut().collect(),
        (Shape::Map, Value::Object(members)) => members.values_mut().collect(),
        (Shape::List | Shape::Map, _) => Vec::new(),
    }
}

/// Returns true if each unknown field of both `a` and `b` is the same in both, according to
/// `same`.
///
/// List elements are compared by index, so the result is meaningful only if `a` and `b` are equal
/// in the fields that the schema knows. Null counts as absent.
pub fn unknown_members_agree<'t>(
    of: impl Into<TypeName<'t>>,
    a: &Value,
    b: &Value,
    same: &dyn Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(found_type), Value::Object(a), Value::Object(b)) = (of.into().find(), a, b) else {
        return true;
    };
    a.iter().all(|(name, a)| match b.get(name) {
        None | Some(Value::Null) => true,
        Some(b) => match found_type.field(name) {
            None => a.is_null() || same(a, b),
            Some(field) => match field.kind {
                Kind::Struct(of) => members_agree(field.shape, of, a, b, same),
                _ => true,
            },
        },
    })
}

fn members_agree(
    shape: Shape,
    of: TypeName<'_>,
    a: &Value,
    b: &Value,
    same: &dyn Fn(&Value, &Value) -> bool,
) -> bool {
    let agree = |a: &Value, b: &Value| unknown_members_agree(of, a, b, same);
    match (shape, a, b) {
        (Shape::Plain | Shape::Pointer, a, b) => agree(a, b),
        (Shape::List, Value::Array(a), Value::Array(b)) => {
            a.iter().zip(b).all(|(a, b)| agree(a, b))
        }
        (Shape::Map, Value::Object(a), Value::Object(b)) => a
            .iter()
            .all(|(key, a)| b.get(key).is_none_or(|b| agree(a, b))),
        (Shape::List | Shape::Map, ..) => true,
    }
}
