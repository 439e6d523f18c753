//! The columns of custom resources: the name, and those of the definition.
//!
//! Upstream: `tableconvertor.go` of `k8s.io/apiextensions-apiserver`.

use std::borrow::Cow;

use jiff::Timestamp;
use kube_apimachinery::{json, schema};
use serde_json::{Number, Value, json};

use super::age::age;
use crate::custom::{Column, CustomResource};
use crate::go;

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
///
/// Upstream: `ConvertToTable`
pub(super) fn cells(resource: &CustomResource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned();
    let cells = resource.columns.iter().map(|column| {
        let found = column.path.first(object);
        match found {
            // Go's own integers, of literals and bytes, are no numbers of JSON.
            Some(Cow::Owned(Value::Number(number)))
                if column.of != "string" && !number.is_f64() =>
            {
                Value::Null
            }
            Some(found) => cell(&column.of, &found, now),
            None => Value::Null,
        }
    });
    std::iter::once(name.unwrap_or_default())
        .chain(cells)
        .collect()
}

/// Upstream: `PrintResults` for texts, otherwise `cellForJSONValue`
fn cell(of: &str, value: &Value, now: Timestamp) -> Value {
    match (of, value) {
        ("string", value) => json!(match value {
            Value::Null => "<no value>".to_owned(),
            Value::Array(_) | Value::Object(_) => json::to_go_string(value),
            scalar => go::fmt::value(scalar),
        }),
        ("integer", Value::Number(number)) => json!(whole(number)),
        ("number", Value::Number(number)) => double(number),
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => json!(date(text, now)),
        _ => Value::Null,
    }
}

/// Returns a number without its fraction. Those that are too large become the least one, as on
/// x86-64.
fn whole(number: &Number) -> i64 {
    let whole = number.as_f64().unwrap_or_default().trunc();
    let parsed = || format!("{whole:.0}").parse().unwrap_or(i64::MIN);
    number.as_i64().unwrap_or_else(parsed)
}

/// Returns a number as Go writes one with a fraction, which has fewer digits than a large whole one.
fn double(number: &Number) -> Value {
    let text = json::to_go_string(&json!(number.as_f64()));
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the age at a time as the API prints it.
///
/// Upstream: `UnmarshalQueryParameter` of `Time` and `ConvertToHumanReadableDateType`
fn date(text: &str, now: Timestamp) -> String {
    if matches!(text, "" | "null") {
        return "<unknown>".to_owned();
    }
    match schema::canonical_time(text) {
        Ok(Some(time)) => age(&time, now),
        Ok(None) => "<unknown>".to_owned(),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_type_of_their_column() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let deep = json!({"b": ["<&>", 1.5], "a": null});
        for (of, value, wanted) in [
            ("integer", json!(2.7), json!(2)),
            ("integer", json!(1e30), json!(i64::MIN)),
            ("integer", json!("3"), Value::Null),
            ("number", json!(2.5), json!(2.5)),
            ("number", json!(3), json!(3)),
            (
                "number",
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            ("boolean", json!("x"), Value::Null),
            ("boolean", json!(true), json!(true)),
            ("string", json!("x<y"), json!("x<y")),
            ("string", json!(1), json!("1")),
            ("string", json!(12_345_678.5), json!("1.23456785e+07")),
            ("string", json!(false), json!("false")),
            ("string", json!(null), json!("<no value>")),
            (
                "string",
                deep,
                json!(r#"{"a":null,"b":["\u003c\u0026\u003e",1.5]}"#),
            ),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!("null"), json!("<unknown>")),
            ("date", json!("0001-01-01T00:00:00Z"), json!("<unknown>")),
            ("date", json!("2026-03-01T11:59:50Z"), json!("10s")),
            ("date", json!("2026-03-01T13:00:00Z"), json!("<invalid>")),
            ("date", json!("2026-03-01"), json!("<invalid>")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(5), Value::Null),
            ("date", json!(null), Value::Null),
        ] {
            assert_eq!(cell(of, &value, now), wanted, "{of} {value}");
        }
    }
}
