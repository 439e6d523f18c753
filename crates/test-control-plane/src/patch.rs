//! Patches: JSON patch, merge patch, strategic merge patch.

use json_patch::PatchOperation;
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Value, json};

use crate::decode::{self, BodyFormat};
use crate::kinds::{Kind, Trait};
use crate::normalize::type_of;
use crate::object::{Draft, compact};
use crate::status::{ApiError, ApiResult};

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
            "application/json-patch+json" => match decode::value(BodyFormat::Json, body)? {
                Value::Array(operations) => Ok(Self::Json(operations)),
                other => Err(ApiError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {} into Go value of type \
                     []handlers.jsonPatchOp",
                    go_type(&other)
                ))),
            },
            "application/merge-patch+json" => Ok(Self::Merge(object(body)?)),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic(object(body)?)),
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
            Self::Json(operations) => apply_json(&mut value, operations)?,
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

fn object(body: &[u8]) -> ApiResult<Value> {
    let value = decode::value(BodyFormat::Json, body)
        .map_err(|err| ApiError::bad_request(format!("error decoding patch: {}", err.message)))?;
    if value.is_object() {
        return Ok(value);
    }
    Err(ApiError::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {} into Go value of type \
         map[string]interface {{}}",
        go_type(&value)
    )))
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

fn apply_json(value: &mut Value, operations: &[Value]) -> ApiResult<()> {
    let operations: Vec<PatchOperation> =
        serde_json::from_value(json!(operations)).map_err(|_| ApiError::unprocessable())?;
    json_patch::patch(value, &operations).map_err(|_| ApiError::unprocessable())
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
