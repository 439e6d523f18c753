//! Empty lists and maps, which are lost when an object is normalized.

use std::borrow::Cow;

use kube_apimachinery::schema::{Field, Shape, Type};
use serde_json::{Map, Value};

use crate::kinds::{Kind, type_of};
use crate::object::Draft;

/// The empty lists and maps of an object as sent. The validation sees them, as upstream's does, and
/// some errors print them.
#[derive(Clone, Debug, Default)]
pub struct Empties(Vec<Empty>);

/// An empty list or map.
#[derive(Clone, Debug)]
struct Empty {
    /// The fields and indices that lead to it.
    path: Vec<String>,
    is_list: bool,
}

impl Empty {
    /// Returns true if a type has this list or map.
    fn is_of(&self, of: &'static Type) -> bool {
        let (mut of, mut shape) = (Some(of), None);
        for step in &self.path {
            if matches!(shape, Some(Shape::List | Shape::Map)) {
                // An index or a key.
                shape = None;
                continue;
            }
            let field = of.and_then(|of| of.field(step));
            shape = field.map(|field| field.shape);
            of = field.and_then(Field::object_type);
        }
        let wanted = if self.is_list {
            Shape::List
        } else {
            Shape::Map
        };
        shape == Some(wanted)
    }
}

impl Empties {
    /// Returns those of an object that isn't normalized yet.
    pub fn of(object: &Value) -> Self {
        let mut found = Vec::new();
        collect(object, &mut Vec::new(), &mut found);
        Self(found)
    }

    /// Returns the object with those that it lacks, as far as their holders still exist.
    pub fn restored<'a>(&self, kind: &Kind, draft: &'a Draft) -> Cow<'a, Draft> {
        let mut draft = Cow::Borrowed(draft);
        let of = type_of(kind);
        let known = self
            .0
            .iter()
            .filter(|empty| of.is_some_and(|of| empty.is_of(of)));
        for Empty { path, is_list } in known {
            let Some((member, holders)) = path.split_last() else {
                continue;
            };
            let holder = holders
                .iter()
                .try_fold(&draft.value, |value, step| match value {
                    Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
                    _ => value.get(step),
                });
            let lacks = holder.and_then(Value::as_object);
            if !lacks.is_some_and(|members| members.get(member).is_none_or(Value::is_null)) {
                continue;
            }
            let value = &mut draft.to_mut().value;
            let holder = holders.iter().try_fold(value, |value, step| match value {
                Value::Array(elements) => elements.get_mut(step.parse::<usize>().ok()?),
                _ => value.get_mut(step),
            });
            if let Some(members) = holder.and_then(Value::as_object_mut) {
                let empty = if *is_list {
                    Value::Array(Vec::new())
                } else {
                    Value::Object(Map::new())
                };
                members.insert(member.clone(), empty);
            }
        }
        draft
    }
}

fn collect<'a>(value: &'a Value, path: &mut Vec<Cow<'a, str>>, found: &mut Vec<Empty>) {
    let is_empty = match value {
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => return,
    };
    if is_empty {
        found.push(Empty {
            path: path.iter().map(ToString::to_string).collect(),
            is_list: value.is_array(),
        });
    }
    let holds_more = |value: &Value| value.is_array() || value.is_object();
    for (i, element) in value.as_array().into_iter().flatten().enumerate() {
        if holds_more(element) {
            path.push(i.to_string().into());
            collect(element, path, found);
            path.pop();
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        if holds_more(member) {
            path.push(name.into());
            collect(member, path, found);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::by_kind;

    #[test]
    fn lost_lists_and_maps_return_to_their_holders() {
        let kind = by_kind("v1", "Pod").unwrap();
        let pod = |spec: Value| Draft {
            value: json!({"spec": spec}),
            data: None,
        };
        let sent = pod(json!({
            "affinity": {},
            "containers": [{"ports": []}, {"env": [], "resources": {"limits": {}}}],
            "nodeSelector": {},
            "unknown": [],
            "volumes": [],
        }));
        let kept = pod(json!({"containers": [{"resources": {}}], "volumes": null}));
        let empties = Empties::of(&sent.value);
        let expected = json!({
            "containers": [{"ports": [], "resources": {}}],
            "nodeSelector": {},
            "volumes": [],
        });
        assert_eq!(empties.restored(kind, &kept), Cow::Owned(pod(expected)));
        assert!(matches!(empties.restored(kind, &sent), Cow::Borrowed(_)));
    }
}
