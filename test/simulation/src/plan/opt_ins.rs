//! Annotations with which sets opt in, and marks that hold their pods.

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
