//! What sets opt in to, and the instances that let them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Action;

/// Prefix of the annotations that carry a set's choices.
pub const PREFIX: &str = "statefulset-controller-manager/";

/// Label of a pod whose removal is requested.
pub const REQUESTED: &str = "statefulset-controller-manager/removal-requested";

/// Label or annotation with which users hold pods.
pub const HOLD_KEY: &str = "example.com/drained";

/// Value that holds.
pub const HOLDS: &str = "no";

/// The feature gates of the opt-ins in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OptIns {
    /// True if they are on, for each instance in turn. An instance without them stands for the
    /// built-in controller.
    pub gates: Vec<bool>,
    /// True if the instances may evict pods.
    pub may_evict: bool,
}

impl Default for OptIns {
    /// All instances have them.
    fn default() -> Self {
        Self {
            gates: vec![true],
            may_evict: true,
        }
    }
}

/// Returns the key of the annotation with this name.
pub fn annotation(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A user sets the annotation with this name on a set, or removes it.
pub fn choose(set: &str, name: &str, value: Option<&str>) -> Action {
    let change = json!({"metadata": {"annotations": {annotation(name): value}}});
    Action::edit("statefulsets", set, change)
}

/// A user sets the label or annotation of a pod that may hold it, or removes it. `place` is `labels`
/// or `annotations`.
pub fn hold(pod: &str, place: &str, value: Option<&str>) -> Action {
    let change: Value = json!({"metadata": {place: {HOLD_KEY: value}}});
    Action::edit("pods", pod, change)
}
