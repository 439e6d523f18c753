//! Values that an update leaves as they were: their errors don't count.
//!
//! Upstream: `CorrelatedObject` of `k8s.io/apiserver/pkg/cel/common`.

use serde_json::Value;

use super::lists::has_same_keys;
use super::node::Node;
use crate::custom::{ListType, Schema};

/// Returns true if a value is what it was before the update.
pub(super) fn is_unchanged(schema: &Schema, node: Node<'_>) -> bool {
    node.old
        .is_some_and(|old| is_equal(schema, node.value, old))
}

/// Compares two values. As in upstream, an object with a field that the schema doesn't specify equals
/// none, and the order of a list with keys doesn't count.
///
/// Upstream: `CachedDeepEqual`
fn is_equal(schema: &Schema, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => match &schema.items {
            Some(inner) if schema.list_type == ListType::Map => {
                let keys = &schema.list_keys;
                let same = |index: usize, item: &Value| {
                    let beside = old.get(index).filter(|old| has_same_keys(keys, old, item));
                    beside.or_else(|| old.iter().find(|old| has_same_keys(keys, old, item)))
                };
                let mut items = new.iter().enumerate();
                new.len() == old.len()
                    && items.all(|(index, item)| {
                        same(index, item).is_some_and(|old| is_equal(inner, item, old))
                    })
            }
            _ => new == old,
        },
        (Value::Object(new), Value::Object(old)) => {
            let is_same = |(name, new): (&String, &Value)| {
                let known = schema.member(name).zip(old.get(name));
                known.is_some_and(|(inner, old)| is_equal(inner, new, old))
            };
            new.len() == old.len() && new.iter().all(is_same)
        }
        _ => new == old,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_with_unspecified_members_count_as_changed() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "known": {"type": "string"},
            "list": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {
                    "k": {"type": "string"}, "v": {"type": "integer"},
                }}},
        }}));
        let equal = |new: Value, old: Value| is_equal(&schema, &new, &old);
        assert!(equal(json!({"known": "a"}), json!({"known": "a"})));
        assert!(!equal(json!({"other": "a"}), json!({"other": "a"})));
        let [a, b] = [json!({"k": "a", "v": 1}), json!({"k": "b", "v": 2})];
        assert!(equal(json!({"list": [a, b]}), json!({"list": [b, a]})));
        assert!(!equal(json!({"list": [a, b]}), json!({"list": [a]})));
        assert!(!equal(json!({"list": [a]}), json!({"list": [b]})));
    }
}
