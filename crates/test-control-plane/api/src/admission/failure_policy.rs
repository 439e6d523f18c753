//! The effect of a policy or webhook that fails.

use serde_json::Value;

use crate::members::text;

/// The effect of a policy or webhook that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request fails.
    Fail,
    /// The policy or webhook is ignored.
    Ignore,
}

impl FailurePolicy {
    /// Reads `failurePolicy` of the spec of a policy, or of a webhook.
    pub(super) fn read(of: &Value) -> Self {
        match text(of, "failurePolicy") {
            "Ignore" => Self::Ignore,
            _ => Self::Fail,
        }
    }
}
