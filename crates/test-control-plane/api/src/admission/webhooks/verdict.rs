//! The response of a webhook to a review.
//!
//! Upstream: `VerifyAdmissionResponse`, `ToStatusErr`

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::members::{list, text};
use crate::options::FieldValidation;
use crate::patch::JsonPatch;
use crate::status::ApiError;

/// The kind of reviews with its group and version, as upstream prints it.
const REVIEW: &str = "admission.k8s.io/v1, Kind=AdmissionReview";

/// The only type of patches.
const JSON_PATCH: &str = "JSONPatch";

/// The lowest code of a denial.
const CODE_MIN: i64 = 400;

/// The largest code that an HTTP response can have; upstream's server fails above.
const CODE_MAX: i64 = 999;

/// A failed review.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The webhook can't be called or responds wrongly; its failure policy decides. The text is
    /// upstream's.
    Call(String),
    /// The request fails.
    Request(ApiError),
}

/// The response of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The denial, if the request isn't allowed.
    pub denial: Option<ApiError>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Annotations for the audit log, without the webhook's name.
    pub annotations: BTreeMap<String, String>,
    /// The patch; empty if there is none.
    patch: Vec<u8>,
    patch_type: String,
}

/// A patch with at least one operation.
#[derive(Clone, Debug)]
pub struct Patch {
    operations: JsonPatch,
    /// The operations.
    pub value: Value,
}

impl Verdict {
    /// Reads a decoded review. Unchecked ones are those of a version whose responses may have any
    /// uid and type.
    pub(super) fn read(
        review: &Value,
        webhook: &str,
        uid: &str,
        (is_mutating, is_checked): (bool, bool),
    ) -> Result<Self, String> {
        let response = review.get("response").filter(|it| it.is_object());
        let response = response.ok_or("webhook response was absent")?;
        if is_checked {
            check_identity(review, response, uid)?;
        }
        let patch = BASE64_STANDARD.decode(text(response, "patch"));
        let mut patch = patch.unwrap_or_default();
        let mut patch_type = response.get("patchType").and_then(Value::as_str);
        if is_checked {
            check_patch(is_mutating, &patch, patch_type)?;
        } else {
            patch_type = Some(JSON_PATCH);
        }
        if !is_mutating {
            patch.clear();
        }
        let warnings = list(response, "warnings").filter_map(Value::as_str);
        let annotations = response.get("auditAnnotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flatten();
        let is_allowed = response["allowed"] == true;
        Ok(Self {
            denial: (!is_allowed).then(|| denial(webhook, response.get("status"))),
            warnings: warnings.map(str::to_owned).collect(),
            annotations: annotations
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            patch,
            patch_type: patch_type.unwrap_or_default().to_owned(),
        })
    }

    /// Returns the patch for a request, which has an object or not.
    ///
    /// # Errors
    ///
    /// The patch can't be decoded, has another type, or the request has no object.
    pub fn patch(&self, webhook: &str, has_object: bool) -> Result<Option<Patch>, Failure> {
        if self.patch.is_empty() {
            return Ok(None);
        }
        let operations = JsonPatch::parse(&self.patch, FieldValidation::Ignore);
        let operations = operations.map_err(|error| {
            let why = error.message;
            Failure::Call(format!(
                "received undecodable patch in webhook response: {why}"
            ))
        })?;
        if operations.is_empty() {
            return Ok(None);
        }
        if !has_object {
            let why = format!(
                "admission webhook {webhook:?} attempted to modify the object, which is not \
                 supported for this operation"
            );
            return Err(Failure::Request(ApiError::internal_error(&why)));
        }
        if self.patch_type != JSON_PATCH {
            let why = format!("unsupported patch type {:?}", self.patch_type);
            return Err(Failure::Call(why));
        }
        let value = serde_json::from_slice(&self.patch).unwrap_or_default();
        Ok(Some(Patch { operations, value }))
    }
}

impl Patch {
    /// Applies the operations to an object.
    ///
    /// # Errors
    ///
    /// An operation fails.
    pub fn apply(&self, object: &Value) -> Result<Value, ApiError> {
        let text = object.to_string();
        let patched = self.operations.run(text.as_bytes());
        let patched = patched.map_err(|failed| ApiError::internal_error(&failed.text))?;
        serde_json::from_slice(&patched)
            .map_err(|error| ApiError::internal_error(&error.to_string()))
    }
}

fn check_identity(review: &Value, response: &Value, uid: &str) -> Result<(), String> {
    let found = text(response, "uid");
    if found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let version = text(review, "apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    let found = format!("{slash}{version}, Kind={}", text(review, "kind"));
    if found != REVIEW {
        return Err(format!(
            "expected webhook response of {REVIEW}, got {found}"
        ));
    }
    Ok(())
}

fn check_patch(is_mutating: bool, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    let has_patch = !patch.is_empty();
    let wrong = match patch_type {
        _ if !is_mutating && has_patch => "validating webhook may not return response.patch",
        Some(_) if !is_mutating => "validating webhook may not return response.patchType",
        None if has_patch => "webhook returned response.patch but not response.patchType",
        Some(_) if !has_patch => "webhook returned response.patchType but not response.patch",
        Some("") => "webhook returned invalid response.patchType of \"\"",
        _ => return Ok(()),
    };
    Err(wrong.to_owned())
}

/// Returns the error for a denied request.
///
/// Upstream: `ToStatusErr`
fn denial(webhook: &str, status: Option<&Value>) -> ApiError {
    let status = status.unwrap_or(&Value::Null);
    let code = status.get("code").and_then(Value::as_i64).unwrap_or(0);
    if code > CODE_MAX {
        return ApiError::connection_closed();
    }
    let code = u16::try_from(code.max(CODE_MIN)).unwrap_or_default();
    let (message, reason) = (text(status, "message"), text(status, "reason"));
    let denied = format!("admission webhook {webhook:?} denied the request");
    let why = Some(message).filter(|it| !it.is_empty());
    let message = match why.or(Some(reason).filter(|it| !it.is_empty())) {
        Some(why) => format!("{denied}: {why}"),
        None => format!("{denied} without explanation"),
    };
    let mut error = ApiError::new(code, reason.to_owned(), message);
    error.details = status.get("details").filter(|it| it.is_object()).cloned();
    if let Some(metadata) = status.get("metadata").filter(|it| **it != json!({})) {
        error.metadata = Some(metadata.clone());
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(response: &Value, is_mutating: bool) -> Result<Verdict, String> {
        let review = json!({
            "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response,
        });
        Verdict::read(&review, "w", "u", (is_mutating, true))
    }

    #[test]
    fn denials_have_a_code_and_a_message() {
        for (status, code, message) in [
            (json!(null), 400, " without explanation"),
            (json!({"code": 200, "message": "m"}), 400, ": m"),
            (json!({"code": 418, "reason": "Because"}), 418, ": Because"),
            (json!({"code": 1000}), 0, ""),
        ] {
            let verdict = read(&json!({"uid": "u", "status": status}), false).unwrap();
            let denial = verdict.denial.unwrap();
            assert_eq!(denial.code, code);
            if code != 0 {
                let expected = format!("admission webhook \"w\" denied the request{message}");
                assert_eq!(denial.message, expected);
            }
        }
    }

    #[test]
    fn responses_belong_to_their_review() {
        let wrong = read(&json!({"uid": "x"}), false).unwrap_err();
        assert_eq!(wrong, "expected response.uid=\"u\", got \"x\"");
        let untyped = json!({"response": {"uid": "u"}});
        let wrong = Verdict::read(&untyped, "w", "u", (false, true)).unwrap_err();
        let expected = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, \
                        got /, Kind=";
        assert_eq!(wrong, expected);
        assert!(Verdict::read(&untyped, "w", "v", (false, false)).is_ok());
    }

    #[test]
    fn patches_have_a_type_and_only_mutating_webhooks_return_them() {
        let patch = BASE64_STANDARD.encode("[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]");
        let both = json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"});
        let verdict = read(&both, true).unwrap();
        let found = verdict.patch("w", true).unwrap().unwrap();
        assert_eq!(found.apply(&json!({})), Ok(json!({"a": 1})));
        assert!(matches!(
            verdict.patch("w", false),
            Err(Failure::Request(_))
        ));
        assert!(read(&both, false).is_err());
        let alone = json!({"uid": "u", "patch": patch});
        assert!(read(&alone, true).is_err());
        let other = json!({"uid": "u", "patch": patch, "patchType": "MergePatch"});
        let other = read(&other, true).unwrap().patch("w", true);
        let expected = Failure::Call("unsupported patch type \"MergePatch\"".to_owned());
        assert_eq!(other.unwrap_err(), expected);
    }
}
