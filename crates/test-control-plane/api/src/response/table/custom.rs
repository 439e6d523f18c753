//! The columns of custom resources: the name, and those of the definition.
//!
//! Upstream: `tableconvertor.go` of `k8s.io/apiextensions-apiserver`.

use jiff::Timestamp;
use kube_apimachinery::time;
use serde_json::{Value, json};

use super::age::age;
use crate::custom::{Column, CustomResource};

/// The description of the first column: that of the name in the metadata's type.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, \
     although some resources may allow a client to request the generation of an appropriate name \
     automatically. Name is primarily intended for creation idempotence and configuration \
     definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Returns the `columnDefinitions`.
pub(super) fn definitions(resource: &CustomResource) -> Vec<Value> {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0,
    });
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "type": column.of,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        })
    };
    let columns = resource.columns.iter().map(column);
    std::iter::once(name).chain(columns).collect()
}

/// Returns the cells of an object.
pub(super) fn cells(resource: &CustomResource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned();
    let cells = resource.columns.iter().map(|column| {
        let found = first(object, &column.path);
        found.map_or(Value::Null, |found| cell(&column.of, found, now))
    });
    std::iter::once(name.unwrap_or_default())
        .chain(cells)
        .collect()
}

/// Upstream: `cellForJSONValue`
fn cell(of: &str, value: &Value, now: Timestamp) -> Value {
    match (of, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => json!(whole),
            (None, Some(number)) => {
                let whole: Result<i64, _> = format!("{:.0}", number.trunc()).parse();
                whole.map_or(Value::Null, |whole| json!(whole))
            }
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_)) => value.clone(),
        ("string", other) => json!(other.to_string()),
        ("date", Value::String(text)) => json!(match time::parse(text) {
            Ok(_) => age(text, now),
            Err(_) => "<invalid>".to_owned(),
        }),
        _ => Value::Null,
    }
}

/// Returns the first value that a JSON path leads to. Filters match nothing but equal texts.
fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = vec![object];
    let mut rest = path;
    while !rest.is_empty() {
        let (step, after) = next_step(rest)?;
        found = found
            .into_iter()
            .flat_map(|value| step.apply(value))
            .collect();
        rest = after;
    }
    found.into_iter().next()
}

/// A step of a JSON path.
enum Step<'p> {
    Member(String),
    Index(&'p str),
    Filter { member: &'p str, wanted: &'p str },
}

/// Splits the first step off a path.
fn next_step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(inner) = path.strip_prefix('[') {
        if let Some(quoted) = inner.strip_prefix('\'') {
            let (name, rest) = quoted.split_once("']")?;
            return Some((Step::Member(name.replace('\\', "")), rest));
        }
        let (inside, rest) = inner.split_once(']')?;
        if let Some(filter) = inside.strip_prefix("?(@.") {
            let (member, wanted) = filter.strip_suffix(')')?.split_once("==")?;
            let wanted = wanted.trim().trim_matches(['"', '\'']);
            let member = member.trim();
            return Some((Step::Filter { member, wanted }, rest));
        }
        return Some((Step::Index(inside), rest));
    }
    let named = path.strip_prefix('.').unwrap_or(path);
    let mut name = String::new();
    let mut chars = named.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return Some((Step::Member(name), &named[at..])),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            other => name.push(other),
        }
    }
    Some((Step::Member(name), ""))
}

impl Step<'_> {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Member(name) if name == "*" => members(value),
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Index("*") => members(value),
            Self::Index(index) => {
                let index: Option<i64> = index.parse().ok();
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = index.map(|index| if index < 0 { index + length } else { index });
                let index = index.and_then(|index| usize::try_from(index).ok());
                index
                    .and_then(|index| items.get(index))
                    .into_iter()
                    .collect()
            }
            Self::Filter { member, wanted } => items
                .iter()
                .filter(|item| match item.get(member) {
                    Some(Value::String(text)) => text == wanted,
                    Some(other) => {
                        let shown = other.to_string();
                        shown == *wanted
                    }
                    None => false,
                })
                .collect(),
        }
    }
}

fn members(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_first_value() {
        let object = json!({
            "spec": {"a.b": 1, "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2}], "f": 2.7},
        });
        for (path, wanted) in [
            (".spec.l[0].v", json!(1)),
            (".spec.l[-1].v", json!(2)),
            (".spec.l[*].v", json!(1)),
            (".spec.l[?(@.t==\"y\")].v", json!(2)),
            (".spec['a.b']", json!(1)),
            (".spec.a\\.b", json!(1)),
        ] {
            assert_eq!(first(&object, path), Some(&wanted), "{path}");
        }
        assert_eq!(first(&object, ".spec.none.deep"), None);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(cell("integer", &object["spec"]["f"], now), json!(2));
        assert_eq!(cell("boolean", &json!("x"), now), Value::Null);
        assert_eq!(cell("string", &json!([1]), now), json!("[1]"));
        assert_eq!(cell("date", &json!("soon"), now), json!("<invalid>"));
    }
}
