//! The form of recorded cases.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::exchange::Credentials;

/// The cases that are about who owns which field; elsewhere the owners don't count.
const ABOUT_MANAGED_FIELDS: [&str; 2] = ["field-manager", "patch-owner-adopt"];
const ABOUT_MANAGED_FIELDS_PREFIX: &str = "apply-";

/// Steps in a namespace of their own.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// The case's name.
    #[serde(rename = "case")]
    pub name: String,
    /// The requests, in order.
    pub(super) steps: Vec<Step>,
    /// Whether `managedFields` count; the name tells where it isn't said.
    managed_fields: Option<bool>,
}

impl Case {
    /// Whether `managedFields` are compared.
    pub(super) fn compares_managed_fields(&self) -> bool {
        self.managed_fields.unwrap_or_else(|| {
            self.name.starts_with(ABOUT_MANAGED_FIELDS_PREFIX)
                || ABOUT_MANAGED_FIELDS.contains(&self.name.as_str())
        })
    }
}

/// A request and its answer.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    /// An HTTP method, or `WATCH`.
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    /// Text is sent as it is, anything else as JSON.
    pub(super) body: Option<Value>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Credentials,
    /// By this name later steps refer to the answer.
    pub(super) id: Option<String>,
    /// The part of the answer that was kept.
    pub(super) project: Option<String>,
    /// How long the client waits, in seconds.
    pub(super) timeout: Option<f64>,
    /// How long the client watches, in seconds.
    pub(super) seconds: Option<f64>,
    /// What is done while the watch is open.
    #[serde(default)]
    pub(super) during: Vec<Step>,
    pub(super) response: Recorded,
}

/// Tells a member that is null from one that isn't there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Credentials, D::Error> {
    let token = Option::deserialize(deserializer)?;
    Ok(token.map_or(Credentials::Nobody, Credentials::Token))
}

/// A recorded answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    pub(super) status: u16,
    /// Without parameters.
    pub(super) content_type: Option<String>,
    #[serde(default)]
    pub(super) body: Value,
    /// The body where it is no JSON.
    pub(super) text: Option<String>,
    /// What a watch saw.
    #[serde(default)]
    pub(super) events: Vec<Value>,
    /// Further headers.
    #[serde(flatten)]
    pub(super) headers: BTreeMap<String, Value>,
}
