//! API errors: `Status` objects with reason, details and causes.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, stored};
use crate::members::{group_of, text_at};

mod field_error;
mod text;

pub use field_error::FieldError;
pub use text::text;

/// The code for a closed connection without a response.
const CODE_CLOSED: u16 = 0;

/// An error response: the `Status` body and the HTTP code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty if the server gives none.
    pub reason: Cow<'static, str>,
    /// The human-readable message.
    pub message: String,
    /// The `details` object, if there is one.
    pub details: Option<Value>,
    /// The metadata of the `Status`, if it has any: the continue token of an expired list, or what a
    /// webhook gave its denial.
    pub metadata: Option<Value>,
}

/// The result of handling a request.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// Builds an error without details.
    pub fn new(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            metadata: None,
        }
    }

    /// Builds the error that closes the connection without a response.
    pub fn connection_closed() -> Self {
        Self::new(CODE_CLOSED, "", "the server closed the connection")
    }

    /// Returns true if the connection closes without a response.
    pub fn closes_connection(&self) -> bool {
        self.code == CODE_CLOSED
    }

    fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for an object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", kind.group_resource()),
        )
        .with(details(name, &kind.group, &kind.plural))
    }

    /// 404 for a resource that isn't served.
    pub fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with(json!({}))
    }

    /// 405: the resource exists, but the method isn't allowed.
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(json!({}))
    }

    /// 409: an object with that name exists.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", kind.group_resource()),
        )
        .with(details(name, &kind.group, &kind.plural))
    }

    /// Says that the existing object of a 409 is being deleted.
    #[must_use]
    pub fn of_object_in_deletion(mut self) -> Self {
        self.message.insert_str(0, "object is being deleted: ");
        self
    }

    /// 409: all generated names are taken.
    pub fn no_unique_name(kind: &Kind, name: &str) -> Self {
        let mut details = details(name, &kind.group, &kind.plural);
        details["retryAfterSeconds"] = json!(1);
        Self::new(
            409,
            "AlreadyExists",
            format!(
                "{} \"{name}\" already exists, the server was not able to generate a unique name \
                 for the object",
                kind.group_resource()
            ),
        )
        .with(details)
    }

    /// 409: the resourceVersion is not the newest.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// 409 for a write, with the resource in the details.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.group_resource();
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}"),
        )
        .with(details(name, &kind.group, &kind.plural))
    }

    /// 409: the uid of the object with this storage key differs from the requested one.
    pub fn other_uid(served: &Arc<Kind>, name: &str, key: &str, wanted: &str, found: &str) -> Self {
        let kind = stored(served);
        Self::conflict(
            kind,
            name,
            &format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in \
                 object meta: {found}"
            ),
        )
    }

    /// 409 for a failed precondition, with the kind in the details.
    pub fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let group_kind = kind.group_kind();
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {group_kind} \"{name}\": {why}"),
        )
        .with(details(name, &kind.group, &kind.kind))
    }

    /// 403, with the resource in the details.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.group_resource();
        Self::new(
            403,
            "Forbidden",
            format!("{resource} \"{name}\" is forbidden: {why}"),
        )
        .with(details(name, &kind.group, &kind.plural))
    }

    /// 422 with one cause per field error.
    pub fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(&kind.kind, &kind.group, name, errors)
    }

    /// 422 for an object. The message names the kind and group in a custom resource, which a patch may
    /// have changed.
    pub fn invalid_object(kind: &Kind, object: &Value, name: &str, errors: &[FieldError]) -> Self {
        if kind.custom.is_none() {
            return Self::invalid(kind, name, errors);
        }
        let group = group_of(text_at(object, "/apiVersion"));
        Self::invalid_kind(text_at(object, "/kind"), group, name, errors)
    }

    /// 422 for a kind that isn't a resource, such as `DeleteOptions`.
    pub fn invalid_kind(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        // A repeated error has several causes, but appears once in the message.
        let mut lines: Vec<String> = Vec::new();
        for error in errors {
            let line = format!("{}: {}", error.field, error.message);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let list = match lines.as_slice() {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        let dotted = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let mut details = details(name, group, kind);
        details["causes"] = errors
            .iter()
            .map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field}))
            .collect();
        Self::new(
            422,
            "Invalid",
            format!("{dotted} \"{name}\" is invalid: {list}"),
        )
        .with(details)
    }

    /// 406: the client accepts no supported media type or form.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 422 for a patch that can't be applied.
    pub fn unprocessable() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with(json!({}))
    }

    /// 410: the requested version is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: the requested version is in the future.
    pub fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        )
        .with(json!({
            "causes": [{
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            }],
            "retryAfterSeconds": 1,
        }))
    }

    /// 500 without a reason.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500 `InternalError`.
    ///
    /// Upstream: `NewInternalError`.
    pub fn internal_error(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        Self::new(500, "InternalError", message).with(json!({"causes": [{"message": why}]}))
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Returns the time that the client should wait, in seconds.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// Returns the `Status` object as text, with upstream's order of fields.
    pub fn to_text(&self) -> String {
        text(&self.to_value())
    }

    /// Returns the `Status` object.
    pub fn to_value(&self) -> Value {
        let metadata = self.metadata.clone().unwrap_or_else(|| json!({}));
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// Builds a `details` object without its empty fields.
pub fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut map = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            map.insert(key.to_owned(), json!(value));
        }
    }
    Value::Object(map)
}
