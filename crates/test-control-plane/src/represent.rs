//! In which form the client wants objects: whole, as table rows, or their metadata only.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::table::{self, IncludeObject};

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As they are.
    Whole,
    /// Table rows.
    Table(IncludeObject),
    /// Metadata only; a list of kind `PartialObjectMetadataList`.
    Metadata,
}

impl Representation {
    /// What the `Accept` header asks for first that can be given.
    ///
    /// # Errors
    ///
    /// 406 if nothing of it can be given.
    pub(crate) fn parse(accept: &str, query: &Query) -> ApiResult<Self> {
        let mut clauses: Vec<(f32, &str)> = accept
            .split(',')
            .map(str::trim)
            .filter(|clause| !clause.is_empty())
            .map(|clause| (quality(clause), clause))
            .collect();
        if clauses.is_empty() {
            return Ok(Self::Whole);
        }
        clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
        clauses
            .iter()
            .find_map(|(_, clause)| Self::of_clause(clause, query))
            .ok_or_else(not_acceptable)
    }

    fn of_clause(clause: &str, query: &Query) -> Option<Self> {
        let base = clause.split(';').next().unwrap_or_default().trim();
        let known = [
            "application/json",
            "application/*",
            "*/*",
            "application/yaml",
        ];
        if !known.contains(&base) {
            return None;
        }
        match (
            parameter(clause, "as"),
            parameter(clause, "g"),
            parameter(clause, "v"),
        ) {
            (None, _, _) => Some(Self::Whole),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Self::Table(
                IncludeObject::parse(query.get("includeObject")),
            )),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => Some(Self::Metadata),
            _ => None,
        }
    }

    /// The body of an answer in this form; errors and the like stay what they are.
    pub(crate) fn body(self, kind: &Kind, body: Bytes, now: Timestamp) -> Bytes {
        if self == Self::Whole {
            return body;
        }
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return body;
        };
        if matches!(
            value.get("kind").and_then(Value::as_str),
            Some("Status" | "Scale") | None
        ) {
            return body;
        }
        let shown = match self {
            Self::Whole => return body,
            Self::Table(include) => table::table(kind, &value, include, now),
            Self::Metadata => metadata(&value),
        };
        shown.to_string().into()
    }
}

fn quality(clause: &str) -> f32 {
    parameter(clause, "q")
        .and_then(|q| q.parse().ok())
        .unwrap_or(1.0)
}

fn parameter<'a>(clause: &'a str, name: &str) -> Option<&'a str> {
    clause
        .split(';')
        .skip(1)
        .filter_map(|p| p.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

fn not_acceptable() -> ApiError {
    ApiError {
        details: Some(json!({})),
        ..ApiError::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        )
    }
}

fn metadata(value: &Value) -> Value {
    let one = |object: &Value| {
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata"),
        })
    };
    match value.get("items").and_then(Value::as_array) {
        None => one(value),
        Some(items) => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": value.get("metadata"),
            "items": items.iter().map(one).collect::<Vec<_>>(),
        }),
    }
}
