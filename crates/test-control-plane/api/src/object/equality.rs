//! Equality of decoded objects.
//!
//! Upstream: `Semantic.DeepEqual` of `k8s.io/apimachinery/pkg/api/equality`

use std::collections::BTreeSet;

use kube_apimachinery::quantity::Quantity;
use kube_apimachinery::schema::{Kind, Shape, Type};
use serde_json::Value;

/// Returns true if two normalized objects of a type mean the same: quantities are equal in value, and
/// lists and maps without elements are equal to none.
pub fn is_semantically_equal(of: &Type, one: &Value, other: &Value) -> bool {
    let mut names = keys(one);
    names.append(&mut keys(other));
    names.into_iter().all(|name| {
        let (one, other) = (member(one, name), member(other, name));
        match of.field(name).map(|field| (field.shape, field.kind)) {
            None => one == other,
            Some((Shape::Pointer, kind)) => {
                one.is_null() == other.is_null() && is_same(kind, one, other)
            }
            Some((Shape::Plain, kind)) => is_same(kind, one, other),
            Some((Shape::List, kind)) => {
                let (one, other) = (elements(one), elements(other));
                let mut pairs = one.iter().zip(other);
                one.len() == other.len() && pairs.all(|(one, other)| is_same(kind, one, other))
            }
            Some((Shape::Map, kind)) => {
                let names = keys(one);
                names == keys(other)
                    && names
                        .into_iter()
                        .all(|name| is_same(kind, member(one, name), member(other, name)))
            }
        }
    })
}

/// Compares two values without their wrapper.
fn is_same(of: Kind, one: &Value, other: &Value) -> bool {
    let quantity = |value: &Value| value.as_str()?.parse::<Quantity>().ok();
    match of {
        Kind::Struct(name) => name
            .find()
            .map_or(one == other, |of| is_semantically_equal(of, one, other)),
        Kind::Quantity => match (quantity(one), quantity(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
        _ => one == other,
    }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, _)| name.as_str()).collect()
}

fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema;
    use serde_json::json;

    use super::*;

    #[test]
    fn spelling_and_empty_lists_make_no_difference() {
        let pod = schema::find_type("Pod").unwrap();
        let with = |memory: &str, rest: Value| {
            let mut container = rest;
            container["resources"] = json!({"limits": {"memory": memory}});
            json!({"spec": {"containers": [container]}})
        };
        let one = with("1Gi", json!({"name": "a", "args": [], "env": null}));
        for (other, is_equal) in [
            (with("1073741824", json!({"name": "a"})), true),
            (with("1024Mi", json!({"name": "a", "ports": []})), true),
            (with("1G", json!({"name": "a"})), false),
            (with("1Gi", json!({"name": "b"})), false),
            (with("1Gi", json!({"name": "a", "args": ["x"]})), false),
            (
                with("1Gi", json!({"name": "a", "securityContext": {}})),
                false,
            ),
        ] {
            assert_eq!(
                is_semantically_equal(pod, &one, &other),
                is_equal,
                "{other}"
            );
        }
    }
}
