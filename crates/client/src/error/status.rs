//! The API server's `Status` object.

use serde::{Deserialize, Serialize};

/// The standard reasons of API servers. For any other reason, the code decides.
const STANDARD_REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// The body of a failure response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `Failure`, or `Success` for a deletion.
    pub status: String,
    /// The HTTP status code; 0 if missing.
    pub code: u16,
    /// A machine-readable reason, such as `NotFound`; may be empty.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
    /// Details of the reason: name, group, kind, causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

impl Status {
    /// Creates a failure without details.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "Failure".to_owned(),
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
        }
    }

    /// Returns true if this is the reason, or if the reason isn't a standard one and this is the
    /// code.
    pub(super) fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason
            || (self.code == code && !STANDARD_REASONS.contains(&self.reason.as_str()))
    }

    /// Returns true if the details contain a cause of this type, such as `NamespaceTerminating`.
    pub fn has_cause(&self, cause: &str) -> bool {
        let causes = self
            .details
            .as_ref()
            .and_then(|details| details.get("causes"));
        causes
            .and_then(serde_json::Value::as_array)
            .is_some_and(|causes| {
                causes.iter().any(|entry| {
                    entry.get("reason").and_then(serde_json::Value::as_str) == Some(cause)
                })
            })
    }
}
