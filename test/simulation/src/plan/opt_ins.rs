//! Annotations with which sets opt in, and marks that hold their pods.

use serde_json::{Value, json};

use super::Action;

/// Prefix of the annotations that carry a set's choices.
pub const PREFIX: &str = "statefulset-controller-manager/";

/// Label of a pod whose removal is requested.
pub const REQUESTED: &str = "statefulset-controller-manager/removal-requested";

/// Label of a pod that is updated in place.
pub const IN_PLACE: &str = "statefulset-controller-manager/in-place-update";

/// Annotation with the time of that label.
pub const IN_PLACE_SINCE: &str = "statefulset-controller-manager/in-place-since";

/// Annotation of a pod that says how its node treats a resize.
pub const RESIZE: &str = "kubelet.test-control-plane/resize";

/// Annotation of a pod with the time that a resize takes.
pub const RESIZE_DELAY: &str = "kubelet.test-control-plane/resize-delay";

/// Label or annotation with which users hold pods.
pub const HOLD_KEY: &str = "example.com/drained";

/// Value that holds.
pub const HOLDS: &str = "no";

/// Storage class whose volumes grow.
pub const GROWING: &str = "growing";

/// Storage class whose volumes grow when their pod starts.
pub const WITH_POD: &str = "with-pod";

/// Storage class whose volumes have a fixed size.
pub const FIXED: &str = "fixed";

/// Returns the key of the annotation with this name.
pub fn annotation(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A user sets the annotation with this name on a set, or removes it.
pub fn choose(set: &str, name: &str, value: Option<&str>) -> Action {
    let change = json!({"metadata": {"annotations": {annotation(name): value}}});
    Action::edit("statefulsets", set, change)
}

/// A user gives the pods of a set this share of a core, and this tier.
pub fn size(set: &str, cpu: &str, tier: &str) -> Action {
    let resources = json!({"requests": {"cpu": cpu}});
    let change = json!({
        "metadata": {"labels": {"tier": tier}},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    });
    Action::Template {
        set: set.to_owned(),
        change,
    }
}

/// The node of a pod treats resizes in this way, or as usual.
pub fn resize_as(pod: &str, name: &str, value: Option<&str>) -> Action {
    Action::edit(
        "pods",
        pod,
        json!({"metadata": {"annotations": {name: value}}}),
    )
}

/// A user sets the label or annotation of a pod that may hold it, or removes it. `place` is `labels`
/// or `annotations`.
pub fn hold(pod: &str, place: &str, value: Option<&str>) -> Action {
    let change: Value = json!({"metadata": {place: {HOLD_KEY: value}}});
    Action::edit("pods", pod, change)
}
