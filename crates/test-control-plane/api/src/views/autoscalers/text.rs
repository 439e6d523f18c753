//! JSON text of values, with fields in the order of their type.

use kube_apimachinery::json::to_go_string;
use kube_apimachinery::schema::{Field, Type, find_type};
use serde_json::{Map, Value};

/// The order of an object's fields, and their names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order<'a> {
    /// By name.
    Any,
    /// That of this type.
    Served(&'a str),
    /// That of the internal form of this type, which has all fields, with a capital letter.
    Internal(&'a str),
}

/// Encodes a value.
pub(super) fn encode(value: &Value, order: Order<'_>) -> String {
    let (name, is_internal) = match order {
        Order::Any => return to_go_string(value),
        Order::Served(name) => (name, false),
        Order::Internal(name) => (name, true),
    };
    match find_type(name) {
        Some(of) => typed(value, of, is_internal),
        None => to_go_string(value),
    }
}

fn typed(value: &Value, of: &Type, is_internal: bool) -> String {
    match value {
        Value::Array(elements) => {
            let texts: Vec<String> = elements
                .iter()
                .map(|element| typed(element, of, is_internal))
                .collect();
            format!("[{}]", texts.join(","))
        }
        Value::Object(members) => {
            let text_of = |field: &Field| -> Option<(String, String)> {
                let value = members.get(field.name);
                let value = value.or_else(|| is_internal.then_some(&Value::Null))?;
                let text = match field.object_type() {
                    Some(of) => typed(value, of, is_internal),
                    None => to_go_string(value),
                };
                let name = if is_internal {
                    in_case(field.name, char::to_ascii_uppercase)
                } else {
                    field.name.to_owned()
                };
                Some((name, text))
            };
            object(of.fields.iter().filter_map(text_of))
        }
        other => to_go_string(other),
    }
}

/// Joins encoded fields.
pub(super) fn object<N: AsRef<str>>(members: impl IntoIterator<Item = (N, String)>) -> String {
    let texts: Vec<String> = members
        .into_iter()
        .map(|(name, text)| format!("{}:{text}", to_go_string(&Value::from(name.as_ref()))))
        .collect();
    format!("{{{}}}", texts.join(","))
}

/// Turns the names of fields to those of the served form.
pub(super) fn in_lower_case(value: Value) -> Value {
    match value {
        Value::Array(elements) => elements.into_iter().map(in_lower_case).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                (
                    in_case(&name, char::to_ascii_lowercase),
                    in_lower_case(value),
                )
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn in_case(name: &str, change: impl Fn(&char) -> char) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|c| change(&c));
    first.into_iter().chain(chars).collect()
}
