//! JSON text in Go's declaration order of fields, for messages.

use std::collections::BTreeMap;

use kube_apimachinery::json::{write_go, write_go_str};
use kube_apimachinery::schema::{Field, Shape, Type};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::go::json::raw::compact;

/// Returns the text of an object of type `of` after a merge patch, the text of which is `patch`.
/// Objects that the patch enters have their fields sorted by name, because Go decodes them into maps,
/// and other values of the patch are those that were sent: `1.50` and `3.0`.
pub(crate) fn patched(of: Option<&Type>, object: &Value, patch: &str) -> String {
    let mut text = String::new();
    let patch = serde_json::from_str(patch).ok();
    write(&Known::of(of), object, patch, &mut text);
    text
}

/// Returns the parts of a text, if it is of their type.
fn parts<'a, T: Deserialize<'a>>(text: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(text?.get()).ok()
}

/// The known type of a value.
enum Known<'a> {
    /// Unknown, or without fields.
    Nothing,
    /// An object of this type.
    Object(&'a Type),
    /// The value of this field.
    Member(&'a Field),
}

impl<'a> Known<'a> {
    fn of(found: Option<&'a Type>) -> Self {
        found.map_or(Self::Nothing, Self::Object)
    }

    /// Returns the type of the field `name`.
    fn member(&self, name: &str) -> Self {
        match self {
            Self::Object(found) => found.field(name).map_or(Self::Nothing, Known::in_field),
            // The values of a map.
            Self::Member(field) => Self::of(field.object_type()),
            Self::Nothing => Self::Nothing,
        }
    }

    fn in_field(field: &'a Field) -> Self {
        match field.shape {
            Shape::Plain | Shape::Pointer => Self::of(field.object_type()),
            Shape::List | Shape::Map => Self::Member(field),
        }
    }

    /// Returns the type of the elements.
    fn element(&self) -> Self {
        match self {
            Self::Member(field) => Self::of(field.object_type()),
            Self::Object(_) | Self::Nothing => Self::Nothing,
        }
    }
}

fn write(known: &Known<'_>, value: &Value, patch: Option<&RawValue>, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sent: Option<BTreeMap<String, &RawValue>> = parts(patch);
            let names = names(known, members, sent.is_some());
            for (i, name) in names.into_iter().enumerate() {
                text.push(if i == 0 { '{' } else { ',' });
                write_go_str(name, text);
                text.push(':');
                let inner = sent.as_ref().and_then(|sent| sent.get(name).copied());
                write(&known.member(name), &members[name], inner, text);
            }
            text.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            let sent: Vec<&RawValue> = parts(patch).unwrap_or_default();
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write(&known.element(), item, sent.get(i).copied(), text);
            }
            text.push(']');
        }
        other => match patch {
            Some(sent) => text.push_str(&String::from_utf8_lossy(&compact(sent.get().as_bytes()))),
            None => write_go(other, text),
        },
    }
}

/// Returns the names of an object's fields: the type's fields in declaration order, then unknown
/// ones.
fn names<'a>(known: &Known<'_>, members: &'a Map<String, Value>, by_name: bool) -> Vec<&'a str> {
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    if let Known::Object(found) = known
        && !by_name
    {
        let declared = |name: &str| found.fields.iter().position(|field| field.name == name);
        names.sort_by_key(|name| declared(name).unwrap_or(usize::MAX));
    }
    names
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema;
    use serde_json::json;

    use super::*;

    #[test]
    fn members_follow_the_type_except_in_patched_objects() {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"uid": "u", "name": "p", "labels": {"b": "1", "a": "2"}},
            "spec": {"volumes": [], "containers": [{"image": "i", "name": "c"}]},
            "zzz": {"b": 1, "a": {}},
        });
        let of = schema::type_of_kind("v1", "Pod");
        let declared = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\
                        \"uid\":\"u\",\"labels\":{\"a\":\"2\",\"b\":\"1\"}},\
                        \"spec\":{\"volumes\":[],\"containers\":[{\"name\":\"c\",\
                        \"image\":\"i\"}]},\"zzz\":{\"a\":{},\"b\":1}}";
        assert_eq!(patched(of, &pod, "null"), declared);
        let text = patched(of, &pod, r#"{"metadata": {"labels": {"a": "2"}}}"#);
        let start = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"a\":\"2\",\
                     \"b\":\"1\"},\"name\":\"p\",\"uid\":\"u\"},\"spec\":{\"volumes\":[],";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(
            patched(None, &json!([{"b": 1, "a": [1, 2]}]), "null"),
            "[{\"a\":[1,2],\"b\":1}]"
        );
    }

    #[test]
    fn values_of_the_patch_keep_their_spelling() {
        let sent =
            r#"{"a": {"n": 3.0, "list": [1.50, {"z": 1E3, "b": null}, "\u00e4<"]}, "b": null}"#;
        let object = json!({"a": {"n": 3.0, "list": [1.5, {"z": 1000.0}, "ä<"], "old": 2.5}});
        assert_eq!(
            patched(None, &object, sent),
            r#"{"a":{"list":[1.50,{"z":1E3},"\u00e4\u003c"],"n":3.0,"old":2.5}}"#
        );
    }
}
