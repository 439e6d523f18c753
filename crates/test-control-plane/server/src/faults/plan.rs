//! Fault plans: rules in a file, for reproducible runs and generated rules.

use kube_test_control_plane_api::setters;
use serde::{Deserialize, Serialize};

use super::rule::FaultRule;
use super::view::ViewRule;
use super::watch_rule::WatchRule;
use super::webhook_rule::WebhookRule;

/// A set of rules as data. In JSON:
///
/// ```
/// # use kube_test_control_plane_server::faults::FaultPlan;
/// let plan = FaultPlan::from_json(r#"{
///   "seed": 7,
///   "requests": [
///     {"match": {"verbs": ["create"], "resources": ["pods"], "userAgent": "my-operator"},
///      "when": {"probability": 0.08, "until": "10m"},
///      "action": {"respond": {"tooManyRequests": {"retryAfterSeconds": 1}}}},
///     {"match": {"verbs": ["delete"]}, "when": {"skip": 1, "limit": 1}, "action": "commitThenDrop"}
///   ],
///   "watches": [
///     {"match": {"resources": ["pods"]}, "action": {"delay": "0s..60ms"}},
///     {"moment": {"afterEvents": {"min": 1, "max": 12}}, "action": "cut"}
///   ],
///   "views": [{"match": {"userAgent": "my-operator"}, "view": {"behind": 20}}],
///   "webhooks": [{"match": {"configuration": "my-hooks"}, "when": {"limit": 3}, "action": "hang"}],
///   "admissionViews": [{"match": {"userAgent": "replica-2"}, "view": {"behind": 5}}]
/// }"#)?;
/// assert_eq!(plan.requests.len(), 2);
/// # Ok::<(), kube_test_control_plane_server::faults::PlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct FaultPlan {
    /// Seeds the random draws of the rules; `None` keeps the control plane's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Rules for requests in the order of evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<FaultRule>,
    /// Rules for watches in the order of evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<WatchRule>,
    /// Rules for the state that reads see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewRule>,
    /// Rules for calls of webhooks in the order of evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookRule>,
    /// Rules for the policies and webhooks that apply to requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admission_views: Vec<ViewRule>,
}

/// An invalid plan.
#[derive(Debug, thiserror::Error)]
#[error("reading a fault plan: {0}")]
pub struct PlanError(serde_json::Error);

impl FaultPlan {
    setters! {
        /// Seeds the random draws of the rules.
        seed: into Option<u64>,
        /// Sets the rules for requests in the order of evaluation.
        requests: each FaultRule,
        /// Sets the rules for watches in the order of evaluation.
        watches: each WatchRule,
        /// Sets the rules for the state that reads see.
        views: each ViewRule,
        /// Sets the rules for calls of webhooks in the order of evaluation.
        webhooks: each WebhookRule,
        /// Sets the rules for the policies and webhooks that apply to requests.
        admission_views: each ViewRule,
    }

    /// Parses a plan.
    ///
    /// # Errors
    ///
    /// The text isn't a plan in JSON; the error has the position.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        serde_json::from_str(text).map_err(PlanError)
    }

    /// Returns the plan in the JSON form that [`from_json`](Self::from_json) parses.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
