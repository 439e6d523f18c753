//! Patches: JSON patch, merge patch, strategic merge patch.

mod json;
mod struct_order;
mod unstructured;

use kube_apimachinery::schema::TypeName;
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Value, json};

pub use unstructured::convert_integers;

use crate::decode;
use crate::go;
use crate::go::json::cursor::{is_huge, numbers};
use crate::go::json::held;
use crate::go::json::raw::compact;
use crate::go::json::read::{DuplicateMembers, Expect, Scope, read, read_checked};
use crate::kinds::{Kind, Trait, type_of};
use crate::object::{Draft, raw_member};
use crate::options::FieldValidation;
use crate::status::{ApiError, ApiResult, FieldError};

pub(crate) use json::MEMBERS;
pub use json::{Failed, JsonPatch};

/// Returns true if the content type is that of server-side apply.
pub fn is_apply(content_type: &str) -> bool {
    decode::media_type(content_type) == "application/apply-patch+yaml"
}

/// The formats of patches for custom resources, besides that of server-side apply.
const CUSTOM_FORMATS: [&str; 2] = [
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// The format of strategic merge patches.
const STRATEGIC_FORMAT: &str = "application/strategic-merge-patch+json";

/// A merge patch.
#[derive(Clone, Debug)]
pub struct MergePatch {
    patch: Value,
    /// The text that was sent, whose spelling errors show.
    text: String,
}

/// A parsed patch.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902.
    Json(JsonPatch),
    /// RFC 7396.
    Merge(MergePatch),
    /// Kubernetes' strategic merge patch, which merges lists by key.
    Strategic(Value),
}

/// The result of a patch.
#[derive(Clone, Debug)]
pub struct Patched {
    /// The new object.
    pub draft: Draft,
    /// The text of a JSON patch's result.
    text: Option<Vec<u8>>,
}

impl Patched {
    /// Returns the text that upstream decodes.
    pub(crate) fn text(&self) -> Vec<u8> {
        let text = self.text.clone();
        text.unwrap_or_else(|| self.draft.to_value().to_string().into_bytes())
    }
}

impl Patch {
    /// Checks the content type of a patch.
    ///
    /// # Errors
    ///
    /// 415 for another content type than those of patches.
    pub fn check_content_type(kind: &Kind, content_type: &str) -> ApiResult<()> {
        let content_type = decode::media_type(content_type);
        if CUSTOM_FORMATS.contains(&content_type) {
            return Ok(());
        }
        if kind.custom.is_some() {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {}, application/apply-patch+yaml",
                CUSTOM_FORMATS.join(", ")
            );
            return Err(ApiError::new(415, "UnsupportedMediaType", message));
        }
        if content_type == STRATEGIC_FORMAT {
            return Ok(());
        }
        Err(ApiError {
            details: Some(json!({})),
            ..ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        })
    }

    /// Parses a patch.
    ///
    /// # Errors
    ///
    /// 415 for another content type, 400 for a body that isn't such a patch.
    pub fn parse(
        kind: &Kind,
        content_type: &str,
        body: &[u8],
        validation: FieldValidation,
    ) -> ApiResult<Self> {
        Self::check_content_type(kind, content_type)?;
        match decode::media_type(content_type) {
            "application/json-patch+json" => JsonPatch::parse(body, validation).map(Self::Json),
            STRATEGIC_FORMAT => object(kind, body)
                .map(Self::Strategic)
                .map_err(ApiError::bad_request),
            _ => {
                let mut patch = object(kind, body).map_err(undecodable)?;
                drop_nulls_in_lists(&mut patch);
                let text = String::from_utf8_lossy(body).into_owned();
                Ok(Self::Merge(MergePatch { patch, text }))
            }
        }
    }

    /// Applies the patch.
    ///
    /// # Errors
    ///
    /// 422 or 400 for a patch that can't be applied to this object.
    pub fn apply(&self, kind: &Kind, old: &Draft) -> ApiResult<Patched> {
        let mut patched = match self {
            Self::Json(patch) => {
                let text = patch.apply(&old.encode())?;
                let draft = Draft::parse(kind, &text).map_err(|_| {
                    let why = decode::type_error(&text).unwrap_or_default();
                    unreadable(&String::from_utf8_lossy(&text), &why)
                })?;
                Patched {
                    draft,
                    text: Some(text),
                }
            }
            Self::Merge(MergePatch { patch, .. }) => {
                let apply = |value: &mut Value| {
                    json_patch::merge(value, patch);
                    Ok(())
                };
                merged(kind, old, patch.get("data").is_none(), apply)?
            }
            // A strategic patch decodes the data too, which sorts its fields.
            Self::Strategic(patch) => merged(kind, old, false, |value| {
                *value = strategic(kind, value, patch)?;
                convert_integers(kind, patch, value);
                Ok(())
            })?,
        };
        // Another kind or version of a custom resource is an error of its validation.
        let found = patched.draft.value.get("kind");
        if kind.custom.is_some() || found.is_some_and(|kind| kind == "Scale") {
            return Ok(patched);
        }
        if let Self::Strategic(_) = self {
            // Upstream decodes the object into its own type, with any kind.
            patched.draft.value["apiVersion"] = json!(kind.api_version());
            patched.draft.value["kind"] = json!(kind.kind);
        } else if let Some(why) = decode::type_error(&patched.text()) {
            return Err(unreadable(&self.shown(kind, &patched), &why));
        } else if patched.draft.text("/apiVersion").unwrap_or("").is_empty() {
            // Upstream decodes the object into its internal type, which has no `metadata`.
            patched.draft = Draft {
                value: json!({}),
                data: None,
            };
        }
        if let Err(error) = decode::check_type(kind, &mut patched.draft) {
            return Err(self.undecodable(kind, error, Some(&patched)));
        }
        Ok(patched)
    }

    /// Converts the error of an undecodable body to that of a patch with such a result.
    pub fn undecodable(&self, kind: &Kind, error: ApiError, patched: Option<&Patched>) -> ApiError {
        let reason = format!("cannot be handled as a {}: ", kind.kind);
        let Some((_, why)) = error.message.split_once(&reason) else {
            return error;
        };
        let shown = patched.map(|patched| self.shown(kind, patched));
        let mismatch = match self {
            // Custom resources are read as JSON.
            Self::Strategic(_) if kind.custom.is_none() => unstructured::mismatch(why),
            _ => None,
        };
        let why = mismatch.as_deref().unwrap_or(why);
        invalid(&shown.unwrap_or_default(), why)
    }

    /// Formats the result for messages.
    pub(crate) fn shown(&self, kind: &Kind, patched: &Patched) -> String {
        match self {
            Self::Strategic(patch) => go::fmt::value(patch),
            Self::Merge(MergePatch { text, .. }) => {
                struct_order::patched(type_of(kind), &patched.draft.to_value(), text)
            }
            Self::Json(_) => String::from_utf8_lossy(&patched.text()).into_owned(),
        }
    }
}

/// Returns the reason why upstream can't convert an applied object with this decoding error.
///
/// Upstream: `Scheme.unstructuredToTyped`.
pub fn unconvertible(kind: &Kind, error: ApiError) -> String {
    let reason = format!("cannot be handled as a {}: ", kind.kind);
    let why = error.message.split_once(&reason).map(|(_, why)| why);
    let Some(why) = why.filter(|_| kind.custom.is_none()) else {
        return error.message;
    };
    let mismatch = unstructured::mismatch(why);
    format!(
        "unable to convert unstructured object to {}/{}, Kind={}: {}",
        kind.group,
        kind.version,
        kind.kind,
        mismatch.as_deref().unwrap_or(why)
    )
}

/// Drops the null fields of objects in lists, which RFC 7396 keeps.
///
/// Upstream: `pruneAryNulls` of json-patch
fn drop_nulls_in_lists(patch: &mut Value) {
    match patch {
        Value::Object(members) => members.values_mut().for_each(drop_nulls_in_lists),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Changes an object with `change`. `keeps_data` is true if raw data stays as it is.
fn merged(
    kind: &Kind,
    old: &Draft,
    keeps_data: bool,
    change: impl FnOnce(&mut Value) -> ApiResult<()>,
) -> ApiResult<Patched> {
    let raw = kind.has(Trait::RawData).then(|| old.data.clone()).flatten();
    let kept = raw.filter(|_| keeps_data);
    let mut value = if kept.is_some() {
        old.value.clone()
    } else {
        old.to_value()
    };
    change(&mut value)?;
    if !value.is_object() {
        return Err(ApiError::unprocessable());
    }
    let draft = match kept {
        Some(data) => Draft {
            value,
            data: Some(held::hold(&compact(&held::release(&data)))),
        },
        None => Draft::from_value(kind, value),
    };
    Ok(Patched { draft, text: None })
}

/// Returns the error for a result whose kind can't be read.
fn unreadable(result: &str, why: &str) -> ApiError {
    invalid(
        result,
        &format!("couldn't get version/kind; json parse error: {why}"),
    )
}

/// Returns the 422 for the result of a patch.
pub(crate) fn invalid(result: &str, why: &str) -> ApiError {
    let value = json!(result).to_string();
    let error = FieldError::invalid_text("patch", &value, why);
    ApiError::invalid_kind("", "", "", &[error])
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "takes over the error that it is given"
)]
fn undecodable(why: String) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
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
                // A merge patch changes fields inside the data too.
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
        StrategicMergeError::UnknownDirective(_) | StrategicMergeError::RetainKeys => {
            ApiError::bad_request(err.to_string())
        }
        _ => ApiError::internal(err.to_string()),
    })
}

#[cfg(test)]
mod tests;
