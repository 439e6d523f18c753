//! Field sets as JSON, the format `FieldsV1`.
//!
//! Each node is a member whose name is its path element. A node without members is a field of the
//! set; a field that has parts too is marked with the member `.`.

use serde_json::{Map, Value};

use super::path::{PathElement, PathError};
use super::set::Set;

/// The mark of a field that is in the set together with parts of it.
const SELF: &str = ".";

/// Why JSON is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldsError {
    /// A name is not a path element.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A value is not an object.
    #[error("expected an object, got {0}")]
    NoObject(String),
}

/// Writes a set.
pub(crate) fn encode(set: &Set) -> Value {
    Value::Object(members(set, false))
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

/// Reads a set. Path elements of unknown types are skipped.
///
/// # Errors
///
/// The value is not a field set.
pub(crate) fn decode(value: &Value) -> Result<Set, FieldsError> {
    decode_node(value).map(|(_, set)| set)
}

/// Whether the node itself is in the set, and which of its parts are.
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
    fn sets_survive_the_way_there_and_back() {
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

    #[test]
    fn what_is_unknown_is_skipped() {
        let fields = json!({"f:a": {"x:new": {"f:b": {}}}, "f:c": null});
        let read = encode(&decode(&fields).unwrap());
        assert_eq!(read, json!({"f:a": {}, "f:c": {}}));
    }

    #[test]
    fn what_is_no_set_is_refused() {
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
