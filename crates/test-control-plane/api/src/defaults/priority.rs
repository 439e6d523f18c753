//! The priority of pods.
//!
//! Upstream: the admission plugin `Priority`. Its classes are not served here; those that every
//! cluster has are known.

use serde_json::{Value, json};

use crate::members::object_mut;

/// The built-in priority classes and their priorities.
const CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Sets the priority of a pod.
///
/// # Errors
///
/// The pod's priority class doesn't exist, or its own priority differs from the class.
pub(super) fn admit(pod: &mut Value) -> Result<(), String> {
    let spec = object_mut(pod, "spec");
    let class = spec.get("priorityClassName").and_then(Value::as_str);
    let class = class.unwrap_or_default();
    let known = CLASSES.iter().find(|(name, _)| *name == class);
    let priority = match (class, known) {
        ("", _) => 0,
        (_, Some((_, priority))) => *priority,
        (class, None) => return Err(format!("no PriorityClass with name {class} was found")),
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(priority));
    spec.entry("preemptionPolicy")
        .or_insert(json!("PreemptLowerPriority"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_gets_the_priority_of_its_class() {
        for (spec, priority) in [
            (json!({}), Ok(0)),
            (json!({"priority": 0}), Ok(0)),
            (
                json!({"priorityClassName": "system-node-critical"}),
                Ok(2_000_001_000),
            ),
            (
                json!({"priorityClassName": "high"}),
                Err("no PriorityClass with name high was found"),
            ),
            (
                json!({"priority": 5}),
                Err(
                    "the integer value of priority (5) must not be provided in pod spec; priority \
                     admission controller computed 0 from the given PriorityClass name",
                ),
            ),
        ] {
            let mut pod = json!({"spec": spec});
            let admitted = admit(&mut pod).map(|()| pod["spec"]["priority"].as_i64());
            let wanted = priority.map(Some).map_err(str::to_owned);
            assert_eq!(admitted, wanted, "{spec}");
        }
    }
}
