//! Terms that select nodes, and the deprecated labels in them.

use serde_json::Value;

use crate::go::names;
use crate::members::{list, text};

/// Node labels that are deprecated, and their messages.
///
/// Upstream: `deprecatedNodeLabels`.
const OLD_NODE_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

pub(super) fn node_label(key: &str) -> Option<&'static str> {
    let row = OLD_NODE_LABELS.iter().find(|(old, _)| *old == key);
    row.map(|(_, message)| *message)
}

/// Upstream: `GetWarningsForNodeSelectorTerm`.
pub(super) fn of_term(term: &Value, with_values: bool, place: &str, found: &mut Vec<String>) {
    for (i, expression) in list(term, "matchExpressions").enumerate() {
        let key = text(expression, "key");
        if let Some(message) = node_label(key) {
            let place = format!("{place}.matchExpressions[{i}].key");
            found.push(format!("{place}: {key} is {message}"));
        }
        let values = list(expression, "values").filter(|_| with_values);
        for (j, value) in values.enumerate() {
            let value = value.as_str().unwrap_or_default();
            for why in names::label_value(value) {
                let place = format!("{place}.matchExpressions[{i}].values[{j}]");
                found.push(format!("{place}: {value} is invalid, {why}"));
            }
        }
    }
}

/// The warnings about deprecated labels in a map, each at a place of its own.
pub(super) fn of_labels(
    labels: Option<&Value>,
    place: impl Fn(&str) -> String,
    found: &mut Vec<String>,
) {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    for (key, _) in labels {
        if let Some(message) = node_label(key) {
            found.push(format!("{}: {message}", place(key)));
        }
    }
}

/// Upstream: `GetWarningsForNodeSelector`.
pub(super) fn of_selector(topology: &Value, found: &mut Vec<String>) {
    of_term(topology, false, "nodeTopology", found);
    let place = |key: &str| format!("nodeTopology.matchLabels.{key}");
    of_labels(topology.get("matchLabels"), place, found);
}
