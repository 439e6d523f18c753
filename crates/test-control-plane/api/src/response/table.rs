//! Objects as table rows, as kubectl prints them.

mod access;
mod age;
mod api_services;
mod autoscalers;
mod cells;
mod certificate_signing_requests;
mod columns;
mod custom;
mod ingresses;
mod jobs;
mod network;
mod pods;
mod policies;
mod texts;
mod workloads;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};
use crate::views;

/// The part of the object that a row carries besides the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Parses the parameter `includeObject`.
    ///
    /// # Errors
    ///
    /// 400 for an unknown value.
    pub(crate) fn parse(text: Option<&str>) -> ApiResult<Self> {
        match text {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// Converts an object or a list to a table of an API version.
///
/// Upstream: `asTable`
pub(crate) fn table(
    version: &str,
    kind: &Kind,
    value: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let one = std::slice::from_ref(value);
    let items = value.get("items").and_then(Value::as_array);
    let rows: Vec<Value> = items
        .map_or(one, Vec::as_slice)
        .iter()
        .map(|object| row(version, kind, object, include, now))
        .collect();
    let mut metadata = json!({});
    for member in ["resourceVersion", "continue", "remainingItemCount"] {
        let found = value.get("metadata").and_then(|m| m.get(member));
        // Only the lists of custom resources show an empty token.
        if let Some(found) = found.filter(|found| **found != "") {
            metadata[member] = found.clone();
        }
    }
    json!({
        "kind": "Table",
        "apiVersion": version,
        "metadata": metadata,
        "columnDefinitions": columns::definitions(kind),
        "rows": rows,
    })
}

fn row(
    version: &str,
    kind: &Kind,
    object: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let stored = views::stored(kind, object);
    let mut row = json!({"cells": columns::cells(kind, &stored, now)});
    match include {
        IncludeObject::None => row["object"] = Value::Null,
        IncludeObject::Metadata => {
            row["object"] = json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": version,
                "metadata": stored.get("metadata"),
            });
        }
        IncludeObject::Object => {
            row["object"] = object.clone();
            row["object"]["kind"] = json!(kind.kind);
            row["object"]["apiVersion"] = json!(kind.api_version());
        }
    }
    if let Some(conditions) = pods::row_conditions(kind, object) {
        row["conditions"] = conditions;
    }
    row
}

/// Returns the text of a watch's next table, which omits the columns.
pub fn without_columns(text: &Bytes) -> Bytes {
    match serde_json::from_slice::<Value>(text) {
        Ok(mut table) => {
            table["columnDefinitions"] = Value::Null;
            table.to_string().into()
        }
        Err(_) => text.clone(),
    }
}
