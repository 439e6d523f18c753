//! The JSON format `FieldsV1` of field sets.
//!
//! Each node is a member named by its path element. A node without members is a field of the set. A
//! node with members has the member `.` if the field itself is in the set.

use kube_apimachinery::json::write_go_str;
use serde_json::{Map, Value};

use super::path::{PathElement, PathError};
use super::set::Set;
use crate::go::json::cursor::Cursor;
use crate::go::json::held;

/// The mark of a field that is in the set besides its children.
const SELF: &str = ".";

/// A reason why JSON is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldsError {
    /// A name is not a path element.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A value is not an object.
    #[error("expected an object, got {0}")]
    NoObject(String),
}

/// Maximum nesting of sets encoded as JSON values; deeper sets become text.
const DEPTH_MAX: usize = 60;

/// Encodes a set. A deep set becomes text in the value: see [`held`].
pub(crate) fn encode(set: &Set) -> Value {
    if depth(set) <= DEPTH_MAX {
        return Value::Object(members(set, false));
    }
    let mut text = String::new();
    write(set, false, &mut text);
    held::read(text.as_bytes(), true)
}

fn depth(set: &Set) -> usize {
    let depths = set.nodes().iter().map(|node| depth(&node.children));
    depths.max().map_or(0, |deepest| deepest + 1)
}

fn write(set: &Set, itself: bool, text: &mut String) {
    text.push('{');
    let mark = itself && !set.is_empty();
    if mark {
        text.push_str("\".\":{}");
    }
    for (index, node) in set.nodes().iter().enumerate() {
        if mark || index > 0 {
            text.push(',');
        }
        write_go_str(&node.element.to_fields_v1(), text);
        text.push(':');
        write(&node.children, node.member, text);
    }
    text.push('}');
}

fn members(set: &Set, itself: bool) -> Map<String, Value> {
    let mut map = Map::new();
    if itself && !set.is_empty() {
        map.insert(SELF.to_owned(), Value::Object(Map::new()));
    }
    for node in set.nodes() {
        let parts = members(&node.children, node.member);
        map.insert(node.element.to_fields_v1(), Value::Object(parts));
    }
    map
}

/// Decodes a set. Skips path elements of unknown types.
///
/// # Errors
///
/// The value is not a field set.
pub(crate) fn decode(value: &Value) -> Result<Set, FieldsError> {
    if let Value::String(text) = value {
        let text = held::json(text);
        return decode_text(&mut Cursor::new(&text)).map(|(_, set)| set);
    }
    decode_node(value).map(|(_, set)| set)
}

/// As [`decode_node`], but from text of any depth.
fn decode_text(cursor: &mut Cursor<'_>) -> Result<(bool, Set), FieldsError> {
    if cursor.peek() != b'{' {
        let raw = cursor.raw();
        if raw == b"null" {
            return Ok((true, Set::EMPTY));
        }
        return Err(FieldsError::NoObject(
            String::from_utf8_lossy(raw).into_owned(),
        ));
    }
    let mut member = false;
    let mut set = Set::EMPTY;
    let mut more = cursor.open(b'{', b'}');
    while more {
        let name = cursor.name();
        match PathElement::parse(&name) {
            _ if name == SELF => {
                cursor.raw();
                member = true;
            }
            Ok(element) => {
                let (member, children) = decode_text(cursor)?;
                set.add(element, member, children);
            }
            Err(PathError::UnknownType) => {
                cursor.raw();
            }
            Err(err) => return Err(err.into()),
        }
        more = cursor.next(b'}');
    }
    Ok((member || set.is_empty(), set))
}

/// Returns true if the node itself is in the set, and the set of its children.
fn decode_node(value: &Value) -> Result<(bool, Set), FieldsError> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return Ok((true, Set::EMPTY)),
        other => return Err(FieldsError::NoObject(other.to_string())),
    };
    let mut member = false;
    let mut set = Set::EMPTY;
    for (name, value) in members {
        if name == SELF {
            member = true;
            continue;
        }
        match PathElement::parse(name) {
            Ok(element) => {
                let (member, children) = decode_node(value)?;
                set.add(element, member, children);
            }
            Err(PathError::UnknownType) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok((member || set.is_empty(), set))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_survive_a_round_trip() {
        for fields in [
            json!({}),
            json!({"f:data": {}}),
            json!({"f:data": {".": {}, "f:a": {}}}),
            json!({"f:spec": {"f:containers": {
                "k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:ports": {
                    "k:{\"containerPort\":443,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}},
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {},
                }},
            }}}),
            json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x.io/a\"": {}, "v:1": {}}}}),
        ] {
            assert_eq!(encode(&decode(&fields).unwrap()), fields);
        }
    }

    #[tokio::test]
    async fn deep_sets_survive_a_round_trip() {
        kube_apimachinery::json::on_large_stack(async {
            let text = format!(
                "{{\"f:b\":{{}},\"f:c\":{}{{\"f:x\":{{}}}}{}}}",
                "{\".\":{},\"f:a\":".repeat(5000),
                "}".repeat(5000)
            );
            let fields = held::read(text.as_bytes(), true);
            assert_eq!(fields, json!(text));
            assert_eq!(encode(&decode(&fields).unwrap()), fields);
        })
        .await;
    }

    #[test]
    fn unknown_elements_are_skipped() {
        let fields = json!({"f:a": {"x:new": {"f:b": {}}}, "f:c": null});
        let read = encode(&decode(&fields).unwrap());
        assert_eq!(read, json!({"f:a": {}, "f:c": {}}));
    }

    #[test]
    fn decode_rejects_invalid_sets() {
        for fields in [
            json!([]),
            json!({"f:a": 1}),
            json!({"fa": {}}),
            json!({"i:x": {}}),
        ] {
            assert!(decode(&fields).is_err(), "{fields}");
        }
    }
}
