//! Injected errors of a real server, its overload protection or a proxy.

use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use kube_test_control_plane_api::status::{ApiError, FieldError};
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
#[non_exhaustive]
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
        /// The field `details`.
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
        self.error(&RequestFacts::default()).code
    }

    /// Returns the response to a request.
    pub(crate) fn reply(&self, facts: &RequestFacts) -> Reply {
        let error = self.error(facts);
        if let Self::Overloaded { .. } = self {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let mut reply = reply::plain(code, OVERLOADED);
            let headers = reply.headers_mut();
            headers.remove(CACHE_CONTROL);
            let seconds = error.retry_after_seconds().unwrap_or_default();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            return reply;
        }
        reply::error(&error)
    }

    /// Returns the `Status` for a request; `None` for a plain text response.
    pub fn status(&self, facts: &RequestFacts) -> Option<Value> {
        let is_plain = matches!(self, Self::Overloaded { .. });
        (!is_plain).then(|| self.error(facts).to_value())
    }

    pub(super) fn error(&self, facts: &RequestFacts) -> ApiError {
        let name = &facts.name;
        let kind = &facts.kind();
        match self {
            Self::Forbidden { message } => ApiError::forbidden(kind, name, message),
            Self::NotFound => ApiError::not_found(kind, name),
            Self::AlreadyExists => ApiError::already_exists(kind, name),
            Self::Conflict => ApiError::modified(kind, name),
            Self::Expired => {
                ApiError::expired("The resourceVersion for the provided list is too old.")
            }
            Self::Invalid { field, message } => {
                let error = FieldError::invalid_object(field, message);
                let message = message.clone();
                ApiError::invalid(kind, name, &[FieldError { message, ..error }])
            }
            Self::TooManyRequests {
                retry_after_seconds,
            }
            | Self::Overloaded {
                retry_after_seconds,
            } => ApiError {
                details: Some(json!({"retryAfterSeconds": retry_after_seconds})),
                ..ApiError::new(
                    429,
                    "TooManyRequests",
                    "too many requests, please try again later",
                )
            },
            Self::InternalError { message } => ApiError::internal_error(message),
            Self::ServiceUnavailable => ApiError::new(
                503,
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            Self::Timeout => ApiError {
                details: Some(json!({})),
                ..ApiError::new(
                    504,
                    "Timeout",
                    "Timeout: request did not complete within the allotted timeout",
                )
            },
            Self::Status {
                code,
                reason,
                message,
                details,
            } => ApiError {
                details: details.clone(),
                ..ApiError::new(*code, reason.clone(), message.clone())
            },
        }
    }
}

impl From<ApiError> for FaultError {
    fn from(error: ApiError) -> Self {
        Self::Status {
            code: error.code,
            reason: error.reason.into_owned(),
            message: error.message,
            details: error.details,
        }
    }
}
