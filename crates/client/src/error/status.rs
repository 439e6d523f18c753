//! The API server's `Status` object.

use std::time::Duration;

use kube_apimachinery::protobuf::{Value, WireError, fields};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

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

/// The field of the details with the suggested wait.
const RETRY_AFTER_SECONDS: &str = "retryAfterSeconds";

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

    /// Decodes a protobuf message.
    pub(crate) fn from_protobuf(message: &[u8]) -> Result<Self, WireError> {
        let mut status = Self::default();
        for field in fields(message, "Status") {
            match field? {
                (2, value) => value.text()?.clone_into(&mut status.status),
                (3, value) => value.text()?.clone_into(&mut status.message),
                (4, value) => value.text()?.clone_into(&mut status.reason),
                (5, Value::Bytes(details)) => status.details = Some(details_of(details)?),
                (6, value) => status.code = u16::try_from(value.number()).unwrap_or_default(),
                _ => {}
            }
        }
        Ok(status)
    }

    /// Returns the wait before the next attempt that the details suggest.
    ///
    /// Upstream: `apierrors.SuggestsClientDelay`.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.get(RETRY_AFTER_SECONDS)?.as_u64()?;
        Some(Duration::from_secs(seconds))
    }

    /// Sets the suggested wait, in whole seconds.
    pub(super) fn set_retry_after(&mut self, wait: Duration) {
        let details = self.details.get_or_insert_with(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert(RETRY_AFTER_SECONDS.to_owned(), json!(wait.as_secs()));
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

/// Returns details as in JSON. Upstream: `metav1.StatusDetails`.
fn details_of(message: &[u8]) -> Result<serde_json::Value, WireError> {
    let mut details = Map::new();
    let mut causes: Vec<serde_json::Value> = Vec::new();
    for field in fields(message, "StatusDetails") {
        match field? {
            (4, Value::Bytes(cause)) => {
                let names = [(1, "reason"), (2, "message"), (3, "field")];
                causes.push(texts_of(cause, "StatusCause", &names)?.into());
            }
            (5, value) if value.number() != 0 => {
                details.insert(RETRY_AFTER_SECONDS.to_owned(), json!(value.number()));
            }
            _ => {}
        }
    }
    let names = [(1, "name"), (2, "group"), (3, "kind"), (6, "uid")];
    details.append(&mut texts_of(message, "StatusDetails", &names)?);
    if !causes.is_empty() {
        details.insert("causes".to_owned(), causes.into());
    }
    Ok(details.into())
}

/// Returns the fields with these field numbers that aren't empty.
fn texts_of(
    message: &[u8],
    name: &str,
    names: &[(u32, &str)],
) -> Result<Map<String, serde_json::Value>, WireError> {
    let mut members = Map::new();
    for field in fields(message, name) {
        let (number, value) = field?;
        let member = names.iter().find(|(found, _)| *found == number);
        if let Some((_, member)) = member
            && !value.bytes().is_empty()
        {
            members.insert((*member).to_owned(), json!(value.text()?));
        }
    }
    Ok(members)
}
