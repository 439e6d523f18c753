//! Finding the members that the schema does not know.

use serde_json::Value;

use super::path::Path;
use super::path::PathStep;
use super::table::Kind;
use super::table::Shape;
use super::table::find_type;

/// Returns each member of `value`, taken as an object of the type `type_name`, that the type or a
/// type within it does not know, with its path, in the order of the paths' names. What an unknown
/// member contains is not listed by itself. Values of the wrong type, and all values of a type that
/// the schema lacks, have no unknown members.
pub fn unknown_members<'a>(type_name: &str, value: &'a Value) -> Vec<(Path, &'a Value)> {
    let mut found = Vec::new();
    walk_object(type_name, value, &mut Path::default(), &mut found);
    found
}

fn walk_object<'a>(
    type_name: &str,
    value: &'a Value,
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let (Some(found_type), Value::Object(members)) = (find_type(type_name), value) else {
        return;
    };
    for (name, member) in members {
        path.push(PathStep::Member(name.clone()));
        match found_type.field(name) {
            None => found.push((path.clone(), member)),
            Some(field) => {
                if let Kind::Struct(type_name) = field.kind {
                    walk_member(field.shape, type_name, member, path, found);
                }
            }
        }
        path.pop();
    }
}

fn walk_member<'a>(
    shape: Shape,
    type_name: &str,
    value: &'a Value,
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let inner: Vec<(PathStep, &Value)> = match (shape, value) {
        (Shape::Plain | Shape::Pointer, value) => {
            return walk_object(type_name, value, path, found);
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
        walk_object(type_name, value, path, found);
        path.pop();
    }
}
