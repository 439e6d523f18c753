//! Unknown and repeated members of a body, for `fieldValidation`.

mod struct_order;
mod walk;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::decode::as_warnings;
use crate::go;
use crate::kinds::{Kind, stored, type_of};
use crate::options::FieldValidation;
use crate::patch::Patch;
use crate::settings::{EmulatedVersion, UnknownFields};
use crate::status::{ApiError, ApiResult, FieldError};

pub use self::walk::has_repeated;
use self::walk::{Finding, walk};

/// The check of a body's members.
#[derive(Clone, Copy, Debug)]
pub struct MemberCheck<'a> {
    /// The kind of the body.
    pub kind: &'a Arc<Kind>,
    /// The client's choice.
    pub validation: FieldValidation,
    /// The version whose schema defines the known fields.
    pub version: EmulatedVersion,
    /// The treatment of members outside the schema.
    pub unknown_fields: UnknownFields,
}

impl MemberCheck<'_> {
    /// Finds repeated and unknown members of a POST or PUT. Returns warnings, or an error for a
    /// strict client. `in_yaml` is the error about repeated members in the body's original YAML.
    ///
    /// # Errors
    ///
    /// 400 for a strict client.
    pub fn body(self, text: &[u8], in_yaml: Option<String>) -> ApiResult<Vec<String>> {
        let Self {
            kind,
            validation,
            version,
            ..
        } = self;
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let reports_unknown = self.reports_unknown();
        let found = walk(kind, version, text)
            .into_iter()
            .filter(|finding| reports_unknown || matches!(finding, Finding::Repeated(_)))
            .map(|finding| finding.to_string());
        let mut found: Vec<String> = in_yaml.into_iter().chain(found).collect();
        if let Some(custom) = &kind.custom {
            let value = serde_json::from_slice(text).unwrap_or_default();
            found.extend(unknown(&custom.unknown_fields(&kind.api_version(), &value)));
        }
        if validation != FieldValidation::Strict || found.is_empty() {
            return Ok(found
                .iter()
                .flat_map(|message| as_warnings(message))
                .collect());
        }
        Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {}",
            kind.kind,
            kind.version,
            kind.kind,
            strict_error(&found)
        )))
    }

    /// Finds repeated members of a patch and the unknown members that it adds to the object.
    /// `patched` returns the object before and after the patch.
    ///
    /// # Errors
    ///
    /// 422 for a strict client.
    pub fn patch(
        self,
        patch: &Patch,
        text: &[u8],
        patched: impl FnOnce() -> Option<(Value, Value)>,
    ) -> ApiResult<Vec<String>> {
        let Self {
            kind,
            validation,
            version,
            ..
        } = self;
        if validation == FieldValidation::Ignore {
            return Ok(Vec::new());
        }
        let prefix = match patch {
            Patch::Json(_) => "json patch ",
            Patch::Merge(_) | Patch::Strategic(_) => "",
        };
        let mut found: Vec<String> = walk::repeated(text)
            .iter()
            .map(|finding| format!("{prefix}{finding}"))
            .collect();
        let is_strict = validation == FieldValidation::Strict;
        let patched = if is_strict || self.reports_unknown() {
            patched()
        } else {
            None
        };
        if let Some((old, new)) = &patched {
            let mut brought = walk(kind, version, new.to_string().as_bytes());
            if !brought.is_empty() {
                // Ignore findings in the old object.
                let known = walk(kind, version, old.to_string().as_bytes());
                brought.retain(|finding| !known.contains(finding));
            }
            found.extend(brought.iter().map(ToString::to_string));
            if let Some(custom) = &kind.custom {
                found.extend(unknown(&custom.unknown_fields(&kind.api_version(), new)));
            }
        }
        if !is_strict || found.is_empty() {
            return Ok(found);
        }
        let new = patched.as_ref().map(|(_, new)| new);
        let value = shown(kind, patch, new);
        let value = value.unwrap_or_else(|| String::from_utf8_lossy(text).into_owned());
        Err(invalid_patch(&value, &strict_error(&found)))
    }

    /// Returns true if unknown fields are reported. Without `fieldValidation`, only pruned fields
    /// are reported, including all unknown fields of custom resources.
    fn reports_unknown(self) -> bool {
        match self.validation {
            FieldValidation::Strict | FieldValidation::Warn => true,
            FieldValidation::Unspecified => {
                self.kind.custom.is_some() || self.unknown_fields == UnknownFields::Prune
            }
            FieldValidation::Ignore => false,
        }
    }
}

/// Returns the messages for unknown members.
fn unknown(paths: &[String]) -> impl Iterator<Item = String> {
    paths.iter().map(|path| format!("unknown field {path:?}"))
}

/// Converts the error of a PUT to that of a patch with an undecodable result. `patched` returns the
/// object before and after the patch.
pub fn undecodable(
    kind: &Arc<Kind>,
    patch: &Patch,
    error: ApiError,
    patched: impl FnOnce() -> Option<(Value, Value)>,
) -> ApiError {
    let told = format!("cannot be handled as a {}: ", stored(kind).kind);
    let Some((_, why)) = error.message.split_once(&told) else {
        return error;
    };
    let patched = patched();
    let value = shown(kind, patch, patched.as_ref().map(|(_, new)| new));
    invalid_patch(&value.unwrap_or_default(), why)
}

/// Formats the result of a patch for messages; `None` if the result is unknown.
fn shown(kind: &Kind, patch: &Patch, new: Option<&Value>) -> Option<String> {
    let of = type_of(kind);
    Some(match patch {
        Patch::Strategic(patch) => go::fmt::value(patch),
        Patch::Merge(patch) => struct_order::patched(of, new?, Some(patch)),
        Patch::Json(operations) => struct_order::patched(of, new?, Some(&reached(operations))),
    })
}

fn invalid_patch(value: &str, why: &str) -> ApiError {
    let value = json!(value).to_string();
    let error = FieldError::invalid_text("patch", &value, why);
    ApiError::invalid_kind("", "", "", &[error])
}

/// Returns the parents of the paths in a JSON patch.
fn reached(operations: &[Value]) -> Value {
    let mut reached = json!({});
    for operation in operations {
        for member in ["path", "from"] {
            let Some(path) = operation.get(member).and_then(Value::as_str) else {
                continue;
            };
            let steps: Vec<&str> = path.split('/').skip(1).collect();
            let mut at = &mut reached;
            // The last step is the member itself, not a parent.
            for step in steps.iter().take(steps.len().saturating_sub(1)) {
                let step = step.replace("~1", "/").replace("~0", "~");
                at = &mut at[step];
                if at.is_null() {
                    *at = json!({});
                }
            }
        }
    }
    reached
}

fn strict_error(found: &[String]) -> String {
    format!("strict decoding error: {}", found.join(", "))
}
