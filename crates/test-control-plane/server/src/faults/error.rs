//! Injected errors of a real server, its overload protection or a proxy.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::status::{ApiError, details};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::facts::RequestFacts;
use crate::reply::{self, Reply};

/// Response body of a server that sheds load.
const OVERLOADED: &str = "Too many requests, please try again later.\n";

/// An error response. Except for `Overloaded`, each is a `Status` with the server's reason, message
/// and details for the requested resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum FaultError {
    /// 403 of an admission plug-in.
    Forbidden {
        /// Reason, such as `exceeded quota: pods`.
        message: String,
    },
    /// 404: the object doesn't exist.
    NotFound,
    /// 409: an object of that name exists.
    AlreadyExists,
    /// 409: the object has been modified.
    Conflict,
    /// 410: the resourceVersion is too old.
    Expired,
    /// 422 with one cause.
    Invalid {
        /// The path of the field.
        field: String,
        /// Description of the error.
        message: String,
    },
    /// 429 as a `Status`.
    TooManyRequests {
        /// Value of `Retry-After`.
        retry_after_seconds: u32,
    },
    /// 429 as plain text, as from API priority and fairness, without a `Status`.
    Overloaded {
        /// Value of `Retry-After`.
        retry_after_seconds: u32,
    },
    /// 500.
    InternalError {
        /// Description of the error.
        message: String,
    },
    /// 503.
    ServiceUnavailable,
    /// 504: the request timed out and may have been processed.
    Timeout,
    /// Any other `Status`.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason; may be empty.
        #[serde(default)]
        reason: String,
        /// The human-readable message.
        #[serde(default)]
        message: String,
        /// The member `details`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
}

impl FaultError {
    /// Returns the 500 of an etcd leader change.
    pub fn leader_changed() -> Self {
        Self::Status {
            code: 500,
            reason: String::new(),
            message: "etcdserver: leader changed".to_owned(),
            details: None,
        }
    }

    /// Returns the HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Forbidden { .. } => 403,
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::Invalid { .. } => 422,
            Self::TooManyRequests { .. } | Self::Overloaded { .. } => 429,
            Self::InternalError { .. } => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
            Self::Status { code, .. } => *code,
        }
    }

    /// Returns the response to a request.
    pub(crate) fn reply(&self, facts: &RequestFacts) -> Reply {
        let code = StatusCode::from_u16(self.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let status = self.status(facts);
        let mut reply = match &status {
            Some(status) => reply::json_value(code, status),
            None => reply::plain(code, OVERLOADED),
        };
        let seconds = match self {
            Self::Overloaded {
                retry_after_seconds,
            } => Some(u64::from(*retry_after_seconds)),
            _ => status
                .as_ref()
                .and_then(|s| s.pointer("/details/retryAfterSeconds")?.as_u64()),
        };
        let headers = reply.headers_mut();
        if let Some(seconds) = seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status.is_none() {
            headers.remove(CACHE_CONTROL);
            headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            );
        }
        reply
    }

    /// Returns the `Status` for a request; `None` for a plain text response.
    pub fn status(&self, facts: &RequestFacts) -> Option<Value> {
        let resource = facts.group_resource();
        let name = &facts.name;
        let object = details(name, &facts.group, &facts.resource);
        let (reason, message, details) = match self {
            Self::Overloaded { .. } => return None,
            Self::Forbidden { message } => (
                "Forbidden",
                format!("{resource} \"{name}\" is forbidden: {message}"),
                Some(object),
            ),
            Self::NotFound => (
                "NotFound",
                format!("{resource} \"{name}\" not found"),
                Some(object),
            ),
            Self::AlreadyExists => (
                "AlreadyExists",
                format!("{resource} \"{name}\" already exists"),
                Some(object),
            ),
            Self::Conflict => (
                "Conflict",
                format!(
                    "Operation cannot be fulfilled on {resource} \"{name}\": the object has been \
                     modified; please apply your changes to the latest version and try again"
                ),
                Some(object),
            ),
            Self::Expired => (
                "Expired",
                "The resourceVersion for the provided list is too old.".to_owned(),
                None,
            ),
            Self::Invalid { field, message } => return Some(invalid(facts, field, message)),
            Self::TooManyRequests {
                retry_after_seconds,
            } => (
                "TooManyRequests",
                "too many requests, please try again later".to_owned(),
                Some(json!({"retryAfterSeconds": retry_after_seconds})),
            ),
            Self::InternalError { message } => (
                "InternalError",
                format!("Internal error occurred: {message}"),
                Some(json!({"causes": [{"message": message}]})),
            ),
            Self::ServiceUnavailable => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request".to_owned(),
                None,
            ),
            Self::Timeout => (
                "Timeout",
                "Timeout: request did not complete within the allotted timeout".to_owned(),
                Some(json!({})),
            ),
            Self::Status {
                reason,
                message,
                details,
                ..
            } => (reason.as_str(), message.clone(), details.clone()),
        };
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": self.code(),
        });
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        if let Some(details) = details {
            status["details"] = details;
        }
        Some(status)
    }
}

fn invalid(facts: &RequestFacts, field: &str, message: &str) -> Value {
    let kind = kinds::by_resource(&facts.group, &facts.version, &facts.resource);
    let kind = kind.map_or(&facts.resource, |kind| &kind.kind);
    let dotted = if facts.group.is_empty() {
        kind.clone()
    } else {
        format!("{kind}.{}", facts.group)
    };
    let mut object = details(&facts.name, &facts.group, kind);
    object["causes"] = json!([
        {"reason": "FieldValueInvalid", "message": message, "field": field},
    ]);
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("{dotted} \"{}\" is invalid: {field}: {message}", facts.name),
        "reason": "Invalid",
        "details": object,
        "code": 422,
    })
}

impl From<ApiError> for FaultError {
    fn from(error: ApiError) -> Self {
        Self::Status {
            code: error.code,
            reason: error.reason.to_owned(),
            message: error.message,
            details: error.details,
        }
    }
}
