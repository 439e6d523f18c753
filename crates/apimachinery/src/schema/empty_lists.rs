//! Empty lists, which protobuf doesn't tell from missing ones.

use serde_json::Value;

use super::table::{Type, TypeName};
use super::words::Shape;

/// Turns each empty list of an object into null: Go writes an object in protobuf and reads it again,
/// as an API server does to store it.
pub fn drop_empty_lists<'t>(of: impl Into<TypeName<'t>>, object: &mut Value) {
    if let Some(of) = of.into().find() {
        drop_in(of, object);
    }
}

fn drop_in(of: &Type, object: &mut Value) {
    for (name, member) in object.as_object_mut().into_iter().flatten() {
        let Some(field) = of.field(name) else {
            continue;
        };
        let inner = field.object_type();
        match (field.shape, &mut *member) {
            (Shape::List, Value::Array(elements)) if elements.is_empty() => *member = Value::Null,
            (Shape::List, Value::Array(elements)) => {
                let inner = inner.into_iter();
                inner.for_each(|inner| elements.iter_mut().for_each(|it| drop_in(inner, it)));
            }
            (Shape::Map, Value::Object(values)) => {
                let inner = inner.into_iter();
                inner.for_each(|inner| values.values_mut().for_each(|it| drop_in(inner, it)));
            }
            (_, member) => {
                if let Some(inner) = inner {
                    drop_in(inner, member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_lists_become_null_at_every_level() {
        let mut set = json!({"spec": {
            "template": {"spec": {"containers": []}},
            "volumeClaimTemplates": [{"spec": {"accessModes": []}}],
        }});
        drop_empty_lists("StatefulSet", &mut set);
        let expected = json!({"spec": {
            "template": {"spec": {"containers": null}},
            "volumeClaimTemplates": [{"spec": {"accessModes": null}}],
        }});
        assert_eq!(set, expected);
    }
}
