//! Patches: JSON patch, merge patch, strategic merge patch.

mod json;

use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Value, json};

use crate::decode;
use crate::go_json;
use crate::kinds::{Kind, Trait};
use crate::normalize::type_of;
use crate::object::{Draft, compact};
use crate::status::{ApiError, ApiResult};

/// Whether a patch of this content type is a configuration to apply.
pub(crate) fn is_apply(content_type: &str) -> bool {
    decode::media_type(content_type) == "application/apply-patch+yaml"
}

/// A patch as it came in.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    /// RFC 6902; the operations as they were sent.
    Json(Vec<Value>),
    /// RFC 7396.
    Merge(Value),
    /// Kubernetes' own, which merges lists by key.
    Strategic(Value),
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    ///
    /// 415 for another content type, 400 for a body that isn't a patch of that type.
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> ApiResult<Self> {
        let kind = decode::media_type(content_type);
        match kind {
            "application/json-patch+json" => operations(body).map_err(undecodable),
            "application/merge-patch+json" => object(body).map(Self::Merge).map_err(undecodable),
            "application/strategic-merge-patch+json" => object(body)
                .map(Self::Strategic)
                .map_err(ApiError::bad_request),
            _ => Err(ApiError {
                details: Some(json!({})),
                ..ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            }),
        }
    }

    /// Whether the patch holds for one version only.
    pub(crate) fn names_resource_version(&self) -> bool {
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
    pub(crate) fn apply(&self, kind: &Kind, old: &Draft) -> ApiResult<Draft> {
        let raw = kind.has(Trait::RawData).then(|| old.data.clone()).flatten();
        let touches_data = match self {
            Self::Json(operations) => operations.iter().any(|operation| {
                ["path", "from"].iter().any(|member| {
                    let path = operation.get(member).and_then(Value::as_str);
                    path.is_some_and(|p| p.is_empty() || p == "/data" || p.starts_with("/data/"))
                })
            }),
            Self::Merge(patch) => patch.get("data").is_some(),
            // A strategic patch decodes everything, and so sorts the members of the data.
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
                data: Some(compact(&data)),
            },
            None => Draft::from_value(kind, value),
        };
        let (version, name) = (kind.api_version(), kind.kind);
        if draft.value.get("kind").is_some_and(|k| k == "Scale") {
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

fn operations(body: &[u8]) -> Result<Patch, String> {
    match value(body)? {
        Value::Array(operations) => {
            if let Some(other) = operations.iter().find(|o| !o.is_object() && !o.is_null()) {
                let found = go_type(other);
                return Err(cannot_unmarshal(found, "handlers.jsonPatchOp"));
            }
            Ok(Patch::Json(operations))
        }
        Value::Null => Ok(Patch::Json(Vec::new())),
        other => Err(cannot_unmarshal(go_type(&other), "[]handlers.jsonPatchOp")),
    }
}

fn object(body: &[u8]) -> Result<Value, String> {
    match value(body)? {
        object @ Value::Object(_) => Ok(object),
        Value::Null => Ok(json!({})),
        other => Err(cannot_unmarshal(go_type(&other), "map[string]interface {}")),
    }
}

fn value(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body)
        .map_err(|err| go_json::syntax_error(body).unwrap_or_else(|| err.to_string()))
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
    let type_name = type_of(kind).map_or("", |found| found.name);
    strategic_merge::apply(type_name, old, patch).map_err(|err| match err {
        StrategicMergeError::UnknownDirective(_) => ApiError::bad_request(err.to_string()),
        StrategicMergeError::NoMergeKey(_) => ApiError::internal(err.to_string()),
    })
}

#[cfg(test)]
mod tests;
