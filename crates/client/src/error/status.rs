//! The API server's `Status` object.

use serde::{Deserialize, Serialize};

/// The reasons that API servers give. Any other reason leaves the decision to the code.
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

/// Why the server refused a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `Failure`, or `Success` where the server answers a deletion.
    pub status: String,
    /// The HTTP status code; 0 if the server gave none.
    pub code: u16,
    /// A word for machines, such as `NotFound`; may be empty.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// What the server adds to the reason: name, group, kind, causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

impl Status {
    /// A failure with these members and no details.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "Failure".to_owned(),
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
        }
    }

    /// True if the reason is this one, or the reason says nothing and the code is this one.
    pub(super) fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason
            || (self.code == code && !STANDARD_REASONS.contains(&self.reason.as_str()))
    }

    /// True if the details name a cause of this type, such as `NamespaceTerminating`.
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
