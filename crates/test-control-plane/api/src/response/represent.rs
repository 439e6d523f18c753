//! The forms of objects in responses: whole objects, table rows or metadata only.

pub mod protobuf;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Kind, SCALE};
use crate::object::raw_member;
use crate::response::table::{self, IncludeObject};
use crate::status::{ApiError, ApiResult};
use crate::views;

/// The form of objects in a response. A version belongs to the form's own kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// Unchanged objects.
    #[default]
    Whole,
    /// Table rows.
    Table {
        /// The `apiVersion` of the table.
        version: &'static str,
        /// The part of the object that a row carries besides the cells.
        include: IncludeObject,
    },
    /// The metadata of one object.
    Metadata {
        /// The `apiVersion` of the metadata.
        version: &'static str,
    },
    /// The metadata of all objects of a list.
    MetadataList {
        /// The `apiVersion` of the list and of its items.
        version: &'static str,
    },
}

impl Representation {
    /// Returns the response's body in this form. A `Status` stays unchanged.
    ///
    /// # Errors
    ///
    /// 406 if the form is for one object and the response is a list, or the reverse.
    pub fn body(self, kind: &Kind, body: Bytes, now: Timestamp) -> ApiResult<Bytes> {
        if self == Self::Whole {
            return Ok(body);
        }
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return Ok(body);
        };
        let shown = value.get("kind").and_then(Value::as_str);
        let Some(shown) = shown.filter(|shown| *shown != "Status") else {
            return Ok(body);
        };
        let items = value.get("items").and_then(Value::as_array);
        let items = items.filter(|_| shown == kind.list_kind());
        let form = match (self, items) {
            (Self::Whole, _) => return Ok(body),
            (Self::Table { version, include }, _) => {
                let kind = if shown == SCALE.kind { &SCALE } else { kind };
                table::table(version, kind, &value, include, now)
            }
            (Self::Metadata { version }, None) => metadata(version, kind, &value),
            (Self::MetadataList { version }, Some(items)) => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": version,
                "metadata": list_metadata(&value),
                "items": items.iter().map(|item| metadata(version, kind, item)).collect::<Vec<_>>(),
            }),
            (Self::Metadata { .. }, Some(_)) => {
                return Err(ApiError::not_acceptable(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list \
                     (*{}.{shown})",
                    go_package(kind)
                )));
            }
            (Self::MetadataList { .. }, None) => {
                return Err(ApiError::not_acceptable(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a \
                     list (*{}.{shown})",
                    go_package(kind)
                )));
            }
        };
        Ok(form.to_string().into())
    }
}

/// Checks that upstream can respond with a custom resource: it takes one with an array `items` for a list,
/// which it then is not.
///
/// Upstream: `IsListType` and `SetList` in `transformResponseObject`
///
/// # Errors
///
/// 500 with upstream's text.
pub fn check_is_one(kind: &Kind, body: &[u8]) -> ApiResult<()> {
    let items = || raw_member(body, "items").is_some_and(|items| items.starts_with(b"["));
    if kind.custom.is_some() && items() {
        return Err(ApiError::internal(
            "*unstructured.Unstructured is not a list: no Items field in this object",
        ));
    }
    Ok(())
}

/// Returns the Go package of the kind's internal type, for error messages.
fn go_package(kind: &Kind) -> &str {
    match &*kind.group {
        // Events of both groups share the core group's internal type.
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or_default(),
    }
}

/// Returns the metadata of a list. An empty token, which lists of custom resources have, isn't shown.
fn list_metadata(list: &Value) -> Option<Value> {
    let mut metadata = list.get("metadata")?.clone();
    if let Some(members) = metadata.as_object_mut()
        && members.get("continue").is_some_and(|token| token == "")
    {
        members.remove("continue");
    }
    Some(metadata)
}

fn metadata(version: &str, kind: &Kind, object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version,
        "metadata": views::stored(kind, object).get("metadata"),
    })
}
