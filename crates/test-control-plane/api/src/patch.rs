//! Patches: JSON patch, merge patch, strategic merge patch.

mod json;

use kube_apimachinery::schema::TypeName;
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Value, json};

use crate::decode;
use crate::go::json::cursor::{Cursor, is_huge, numbers};
use crate::go::json::held;
use crate::go::json::raw::compact;
use crate::go::json::read::{DuplicateMembers, Expect, Scope, read, read_checked};
use crate::kinds::{Kind, Trait, type_of};
use crate::object::{Draft, raw_member};
use crate::status::{ApiError, ApiResult};

/// Returns true if the content type is that of server-side apply.
pub fn is_apply(content_type: &str) -> bool {
    decode::media_type(content_type) == "application/apply-patch+yaml"
}

/// The formats of patches for custom resources, besides that of server-side apply.
const CUSTOM_FORMATS: [&str; 2] = [
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// A parsed patch.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902, with the operations as sent.
    Json(Vec<Value>),
    /// RFC 7396.
    Merge(Value),
    /// Kubernetes' strategic merge patch, which merges lists by key.
    Strategic(Value),
}

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    ///
    /// 415 for another content type, 400 for a body that isn't such a patch.
    pub fn parse(kind: &Kind, content_type: &str, body: &[u8]) -> ApiResult<Self> {
        if kind.custom.is_some() && !CUSTOM_FORMATS.contains(&decode::media_type(content_type)) {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {}, application/apply-patch+yaml",
                CUSTOM_FORMATS.join(", ")
            );
            return Err(ApiError::new(415, "UnsupportedMediaType", message));
        }
        match decode::media_type(content_type) {
            "application/json-patch+json" => operations(kind, body).map_err(undecodable),
            "application/merge-patch+json" => {
                object(kind, body).map(Self::Merge).map_err(undecodable)
            }
            "application/strategic-merge-patch+json" => object(kind, body)
                .map(Self::Strategic)
                .map_err(ApiError::bad_request),
            _ => Err(ApiError {
                details: Some(json!({})),
                ..ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            }),
        }
    }

    /// Returns true if the patch applies to only one resource version.
    pub fn names_resource_version(&self) -> bool {
        match self {
            Self::Json(operations) => operations.iter().any(|operation| {
                operation.get("path") == Some(&json!("/metadata/resourceVersion"))
            }),
            Self::Merge(patch) | Self::Strategic(patch) => patch
                .pointer("/metadata/resourceVersion")
                .is_some_and(|version| !version.is_null()),
        }
    }

    /// Applies the patch.
    ///
    /// # Errors
    ///
    /// 422 or 400 for a patch that can't be applied to this object.
    pub fn apply(&self, kind: &Kind, old: &Draft) -> ApiResult<Draft> {
        let raw = kind.has(Trait::RawData).then(|| old.data.clone()).flatten();
        let touches_data = match self {
            Self::Json(operations) => operations.iter().any(|operation| {
                ["path", "from"].iter().any(|member| {
                    let path = operation.get(member).and_then(Value::as_str);
                    path.is_some_and(|p| p.is_empty() || p == "/data" || p.starts_with("/data/"))
                })
            }),
            Self::Merge(patch) => patch.get("data").is_some(),
            // A strategic patch decodes the data too, which sorts its members.
            Self::Strategic(_) => true,
        };
        let kept = raw.filter(|_| !touches_data);
        let mut value = if kept.is_some() {
            old.value.clone()
        } else {
            old.to_value()
        };
        match self {
            Self::Json(operations) => json::apply(&mut value, operations)?,
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Strategic(patch) => value = strategic(kind, &value, patch)?,
        }
        if !value.is_object() {
            return Err(ApiError::unprocessable());
        }
        let mut draft = match kept {
            Some(data) => Draft {
                value,
                data: Some(held::hold(&compact(&held::release(&data)))),
            },
            None => Draft::from_value(kind, value),
        };
        let (version, name) = (kind.api_version(), &kind.kind);
        // Another kind or version of a custom resource is an error of its validation.
        if kind.custom.is_some() || draft.value.get("kind").is_some_and(|k| k == "Scale") {
            return Ok(draft);
        }
        decode::check_type(kind, &mut draft)?;
        draft.value["apiVersion"] = json!(version);
        draft.value["kind"] = json!(name);
        Ok(draft)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "takes over the error that it is given"
)]
fn undecodable(why: String) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

fn operations(kind: &Kind, body: &[u8]) -> Result<Patch, String> {
    match read(body, Expect::Anything, DuplicateMembers::Replace)? {
        Value::Array(mut operations) => {
            if let Some(other) = operations.iter().find(|o| !o.is_object() && !o.is_null()) {
                let found = go_type(other);
                return Err(cannot_unmarshal(found, "handlers.jsonPatchOp"));
            }
            take_values(kind, body, &mut operations);
            Ok(Patch::Json(operations))
        }
        Value::Null => Ok(Patch::Json(Vec::new())),
        other => Err(cannot_unmarshal(go_type(&other), "[]handlers.jsonPatchOp")),
    }
}

/// Decodes the operations' values again, each by the type at its path.
fn take_values(kind: &Kind, body: &[u8], operations: &mut [Value]) {
    let mut cursor = Cursor::new(body);
    let mut more = cursor.open(b'[', b']');
    for operation in operations {
        if !more {
            return;
        }
        let text = cursor.raw();
        more = cursor.next(b']');
        let path = operation.get("path").and_then(Value::as_str);
        let (Some(path), Some(raw)) = (path, raw_member(text, "value")) else {
            continue;
        };
        let mut expect = type_of(kind).map_or(Expect::Anything, Expect::Object);
        for step in path.split('/').skip(1) {
            expect = expect.step(&step.replace("~1", "/").replace("~0", "~"));
        }
        if kind.has(Trait::RawData) && path.starts_with("/data") {
            expect = Expect::Anything;
        }
        let scope = if path.starts_with("/metadata/") {
            Scope::Metadata
        } else {
            Scope::Inside
        };
        operation["value"] = read_checked(raw, expect, DuplicateMembers::Merge, scope);
    }
}

fn object(kind: &Kind, body: &[u8]) -> Result<Value, String> {
    let expect = type_of(kind).map_or(Expect::Anything, Expect::Object);
    match read(body, expect, DuplicateMembers::Replace)? {
        mut object @ Value::Object(_) => {
            // Go decodes all numbers of a patch as doubles.
            if let Some(number) = numbers(body).find(|number| is_huge(number)) {
                let number = String::from_utf8_lossy(number);
                return Err(cannot_unmarshal(&format!("number {number}"), "float64"));
            }
            if kind.has(Trait::RawData)
                && let Some(raw) = raw_member(body, "data")
            {
                // A merge patch changes members inside the data too.
                object["data"] = read_checked(
                    raw,
                    Expect::Anything,
                    DuplicateMembers::Replace,
                    Scope::Inside,
                );
            }
            Ok(object)
        }
        Value::Null => Ok(json!({})),
        other => Err(cannot_unmarshal(go_type(&other), "map[string]interface {}")),
    }
}

fn cannot_unmarshal(found: &str, into: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {into}")
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn strategic(kind: &Kind, old: &Value, patch: &Value) -> ApiResult<Value> {
    let of = type_of(kind).map_or_else(|| "".into(), TypeName::from);
    strategic_merge::apply(of, old, patch).map_err(|err| match err {
        StrategicMergeError::UnknownDirective(_) => ApiError::bad_request(err.to_string()),
        StrategicMergeError::NoMergeKey(_) => ApiError::internal(err.to_string()),
    })
}

#[cfg(test)]
mod tests;
