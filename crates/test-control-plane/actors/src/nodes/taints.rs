//! Taints and tolerations.

use std::time::Duration;

use serde_json::{Value, json};

use kube_test_control_plane_api::members::{list_at, text};

/// The taint of a node that its kubelet reports as not ready.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The taint of a node whose kubelet stopped reporting.
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The taint of a cordoned node.
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The taint of a node that a user declared out of service.
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Returns the taints of a node.
pub(crate) fn of_node(node: &Value) -> impl Iterator<Item = &Value> {
    list_at(node, "/spec/taints")
}

/// Reports whether a taint has this effect.
pub(crate) fn has_effect(taint: &Value, effect: &str) -> bool {
    text(taint, "effect") == effect
}

/// Reports whether a taint has this key and effect.
pub(crate) fn is(taint: &Value, key: &str, effect: &str) -> bool {
    text(taint, "key") == key && has_effect(taint, effect)
}

/// Creates a taint.
pub(crate) fn new(key: &str, value: &str, effect: &str, now: &str) -> Value {
    let mut taint = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        taint["value"] = json!(value);
    }
    // Other taints have a time only with effect `NoExecute`.
    if effect == "NoExecute" || key.starts_with("node.kubernetes.io/") {
        taint["timeAdded"] = json!(now);
    }
    taint
}

/// Formats a taint as messages do: `{key: value}`.
pub(crate) fn shown(taint: &Value) -> String {
    format!("{{{}: {}}}", text(taint, "key"), text(taint, "value"))
}

/// A pod's toleration of `NoExecute` taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tolerance {
    /// Indefinitely.
    Forever,
    /// For a limited time.
    For(Duration),
}

/// Returns the time for which a pod stays on a node with these taints.
///
/// Upstream: `getMinTolerationTime`.
pub(crate) fn tolerance(pod: &Value, taints: &[&Value]) -> Tolerance {
    let mut least = Tolerance::Forever;
    for taint in taints {
        let Some(toleration) = tolerations(pod).find(|t| tolerates(t, taint)) else {
            return Tolerance::For(Duration::ZERO);
        };
        let seconds = toleration.get("tolerationSeconds").and_then(Value::as_i64);
        if let Some(seconds) = seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            least = match least {
                Tolerance::For(before) if before <= time => least,
                _ => Tolerance::For(time),
            };
        }
    }
    least
}

/// Reports whether a pod tolerates a taint.
pub(crate) fn is_tolerated(pod: &Value, taint: &Value) -> bool {
    tolerations(pod).any(|toleration| tolerates(toleration, taint))
}

fn tolerations(pod: &Value) -> impl Iterator<Item = &Value> {
    list_at(pod, "/spec/tolerations")
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let wanted = |member: &str| {
        let text = text(toleration, member);
        (!text.is_empty()).then_some(text)
    };
    let fits = |member: &str| wanted(member).is_none_or(|wanted| wanted == text(taint, member));
    let exists = wanted("operator") == Some("Exists");
    fits("effect")
        && fits("key")
        && (exists || text(toleration, "value") == text(taint, "value"))
        && (exists || wanted("key").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(tolerations: &Value) -> Value {
        json!({"spec": {"tolerations": tolerations}})
    }

    #[test]
    fn toleration_matches_key_value_and_effect() {
        let taint = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
        for (toleration, tolerated) in [
            (json!({"key": "a", "operator": "Equal", "value": "b"}), true),
            (
                json!({"key": "a", "value": "b", "effect": "NoSchedule"}),
                true,
            ),
            (json!({"key": "a", "value": "c"}), false),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (
                json!({"key": "a", "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (json!({"key": "b", "operator": "Exists"}), false),
        ] {
            let found = is_tolerated(&pod(&json!([toleration])), &taint);
            assert_eq!(found, tolerated, "{toleration}");
        }
    }

    #[test]
    fn shortest_toleration_applies() {
        let taints = [
            json!({"key": "a", "effect": "NoExecute"}),
            json!({"key": "b", "effect": "NoExecute"}),
        ];
        let taints: Vec<&Value> = taints.iter().collect();
        let tolerations = |seconds: [Option<i64>; 2]| {
            let [a, b] = seconds;
            pod(&json!([
                {"key": "a", "operator": "Exists", "tolerationSeconds": a},
                {"key": "b", "operator": "Exists", "tolerationSeconds": b},
            ]))
        };
        let seconds = |seconds| Tolerance::For(Duration::from_secs(seconds));
        assert_eq!(
            tolerance(&tolerations([Some(300), Some(60)]), &taints),
            seconds(60)
        );
        assert_eq!(
            tolerance(&tolerations([None, Some(-1)]), &taints),
            seconds(0)
        );
        assert_eq!(
            tolerance(&tolerations([None, None]), &taints),
            Tolerance::Forever
        );
        assert_eq!(tolerance(&pod(&json!([])), &taints), seconds(0));
        assert_eq!(tolerance(&pod(&json!([])), &[]), Tolerance::Forever);
    }
}
