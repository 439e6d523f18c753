//! File format of recorded cases.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::webhooks::RecordedResponse;
use crate::exchange::Credentials;

/// Cases about field ownership; others ignore `managedFields`.
const ABOUT_MANAGED_FIELDS: [&str; 2] = ["field-manager", "patch-owner-adopt"];
const ABOUT_MANAGED_FIELDS_PREFIX: &str = "apply-";

/// Header with the user whose permissions a request takes.
const IMPERSONATE_USER: &str = "impersonate-user";

/// Steps in their own namespace.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Name of the case.
    #[serde(rename = "case")]
    pub name: String,
    /// Requests, in order.
    pub(super) steps: Vec<Step>,
    /// True if `managedFields` are compared; by default the name decides.
    managed_fields: Option<bool>,
    /// Responses of the case's webhooks, by path.
    pub(super) webhooks: Option<BTreeMap<String, RecordedResponse>>,
}

impl Case {
    /// Returns true if the case's server calls webhooks.
    pub(super) fn has_webhooks(&self) -> bool {
        self.webhooks.is_some()
    }

    /// Returns true if `managedFields` are compared.
    pub(super) fn compares_managed_fields(&self) -> bool {
        self.managed_fields.unwrap_or_else(|| {
            self.name.starts_with(ABOUT_MANAGED_FIELDS_PREFIX)
                || ABOUT_MANAGED_FIELDS.contains(&self.name.as_str())
        })
    }
}

/// A request with its response.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    /// An HTTP method, or `WATCH`.
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    /// Body: a string is sent verbatim, anything else as JSON.
    pub(super) body: Option<Value>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Credentials,
    /// Name by which later steps refer to the response.
    pub(super) id: Option<String>,
    /// Part of the response that was kept.
    pub(super) project: Option<String>,
    /// Time limit of the client, in seconds.
    pub(super) timeout: Option<f64>,
    /// Duration of a watch, in seconds.
    pub(super) seconds: Option<f64>,
    /// Steps during the watch.
    #[serde(default)]
    pub(super) during: Vec<Step>,
    /// Responses of webhooks from this step on, by path.
    #[serde(default)]
    pub(super) webhooks: BTreeMap<String, RecordedResponse>,
    /// Calls that the webhooks received.
    #[serde(default)]
    pub(super) received: Vec<Value>,
    pub(super) response: Recorded,
}

impl Step {
    /// Returns true for a request of the administrator in their own name.
    pub(super) fn is_administrators(&self) -> bool {
        let mut headers = self.headers.keys();
        self.token == Credentials::Administrator
            && !headers.any(|name| name.eq_ignore_ascii_case(IMPERSONATE_USER))
    }
}

/// Distinguishes a null field from a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Credentials, D::Error> {
    let token = Option::deserialize(deserializer)?;
    Ok(token.map_or(Credentials::Nobody, Credentials::Token))
}

/// A recorded response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    pub(super) status: u16,
    /// Content type without parameters.
    pub(super) content_type: Option<String>,
    #[serde(default)]
    pub(super) body: Value,
    /// The body, if it is not JSON.
    pub(super) text: Option<String>,
    /// Events of a watch.
    #[serde(default)]
    pub(super) events: Vec<Value>,
    /// Additional headers.
    #[serde(flatten)]
    pub(super) headers: BTreeMap<String, Value>,
}
