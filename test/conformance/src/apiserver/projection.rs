//! Projection of a response to the recorded part.

use anyhow::bail;
use serde_json::{Map, Value, json};

/// Compared fields of a column definition.
const COLUMN: [&str; 4] = ["name", "type", "format", "priority"];

/// Prefix of the projection to one group of a discovery document.
const ENTRY: &str = "entry:";

/// Projects a response like its recording. Failures are kept whole.
pub(super) fn project(how: &str, answer: &Value, recorded: &Value) -> anyhow::Result<Value> {
    if answer["kind"] == "Status" {
        return Ok(answer.clone());
    }
    Ok(match how {
        "names" => {
            let names: Vec<&Value> = list(answer, "items")
                .map(|item| &item["metadata"]["name"])
                .collect();
            json!({"kind": answer["kind"], "names": names})
        }
        "keys" => {
            let keys: Vec<&String> = answer.as_object().into_iter().flat_map(Map::keys).collect();
            json!({"keys": keys})
        }
        "name" => json!({"name": answer["metadata"]["name"]}),
        "table" => table(answer),
        entry if entry.starts_with(ENTRY) => {
            let name = &entry[ENTRY.len()..];
            let mut groups = list(answer, "items").chain(list(answer, "groups"));
            let found =
                groups.find(|group| group["name"] == name || group["metadata"]["name"] == name);
            json!({"kind": answer["kind"], "entry": found})
        }
        path if path.contains('.') => member(path, answer, recorded),
        other => bail!("the projection {other:?} is not known"),
    })
}

fn list<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value[member].as_array().into_iter().flatten()
}

fn table(answer: &Value) -> Value {
    let columns: Vec<Value> = list(answer, "columnDefinitions")
        .map(|column| {
            let members = COLUMN.map(|name| (name.to_owned(), column[name].clone()));
            Value::Object(members.into_iter().collect())
        })
        .collect();
    let rows: Vec<Value> = list(answer, "rows")
        .map(|row| json!({"cells": row["cells"], "object": row["object"]["kind"]}))
        .collect();
    json!({"kind": answer["kind"], "columns": columns, "rows": rows})
}

/// One field, under its name in the recording, if any.
fn member(path: &str, answer: &Value, recorded: &Value) -> Value {
    let value = answer
        .pointer(&format!("/{}", path.replace('.', "/")))
        .unwrap_or(&Value::Null);
    match recorded
        .as_object()
        .and_then(|members| members.keys().next())
    {
        Some(name) if Some(name.as_str()) == path.split('.').next() => {
            let nested = |inner: Value, name: &str| json!({ name: inner });
            path.rsplit('.').fold(value.clone(), nested)
        }
        Some(name) => json!({ name: value }),
        None => value.clone(),
    }
}
