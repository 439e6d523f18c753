//! Plans: rules as a file, so that a run can be repeated and a generator can make them.

use serde::{Deserialize, Serialize};

use super::rule::FaultRule;
use super::view::ViewRule;
use super::watch_rule::WatchRule;

/// Rules as data. In JSON:
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
///     {"match": {"resources": ["pods"]}, "action": {"delay": {"min": "0s", "max": "60ms"}}},
///     {"moment": {"afterEvents": {"min": 1, "max": 12}}, "action": "cut"}
///   ],
///   "views": [{"match": {"userAgent": "my-operator"}, "view": {"behind": 20}}]
/// }"#)?;
/// assert_eq!(plan.requests.len(), 2);
/// # Ok::<(), kube_test_control_plane_server::faults::PlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultPlan {
    /// Seeds what the rules draw by chance; none keeps the seed of the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Rules for requests, the first first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<FaultRule>,
    /// Rules for watches, the first first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<WatchRule>,
    /// Rules for what reads see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewRule>,
}

/// A plan that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("reading a fault plan: {0}")]
pub struct PlanError(serde_json::Error);

impl FaultPlan {
    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// The text isn't JSON of a plan; the error names the place.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        serde_json::from_str(text).map_err(PlanError)
    }

    /// The plan as JSON that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
