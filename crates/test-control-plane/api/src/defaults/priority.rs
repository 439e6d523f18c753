//! The priority of pods.
//!
//! Upstream: the admission plugin `Priority`. The classes that every cluster has are known without
//! an object.

use serde_json::{Value, json};

use crate::members::{number_at, object_mut, text, text_at};

/// The built-in priority classes and their priorities.
const CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// The default of pods and classes.
const PREEMPT: &str = "PreemptLowerPriority";

/// Returns the priority class of a name, or for an empty name that of pods without one.
pub type FindClass<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Sets the priority of a pod.
///
/// # Errors
///
/// The pod's priority class doesn't exist, or its own priority differs from the class.
pub(super) fn admit(pod: &mut Value, find: FindClass<'_>) -> Result<(), String> {
    let spec = object_mut(pod, "spec");
    let name = spec.get("priorityClassName").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let known = CLASSES.iter().find(|(known, _)| *known == name);
    let (priority, policy) = match (name, known, find(name)) {
        (_, Some((_, priority)), _) => (*priority, PREEMPT.to_owned()),
        ("", None, None) => (0, PREEMPT.to_owned()),
        (name, None, None) => return Err(format!("no PriorityClass with name {name} was found")),
        (_, None, Some(class)) => {
            spec.insert(
                "priorityClassName".to_owned(),
                json!(text_at(&class, "/metadata/name")),
            );
            let policy = match text(&class, "preemptionPolicy") {
                "" => PREEMPT,
                policy => policy,
            };
            (number_at(&class, "/value"), policy.to_owned())
        }
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(priority));
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// Keeps the priority of a changed pod that doesn't give it.
pub(super) fn keep(old: &Value, pod: &mut Value) {
    let old = old.get("spec").unwrap_or(&Value::Null);
    let spec = object_mut(pod, "spec");
    for member in ["priority", "preemptionPolicy"] {
        let stored = old.get(member).filter(|value| !value.is_null());
        if let Some(stored) = stored
            && spec.get(member).is_none_or(Value::is_null)
        {
            spec.insert(member.to_owned(), stored.clone());
        }
    }
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
            let admitted = admit(&mut pod, &|_| None).map(|()| pod["spec"]["priority"].as_i64());
            let wanted = priority.map(Some).map_err(str::to_owned);
            assert_eq!(admitted, wanted, "{spec}");
        }
    }

    #[test]
    fn pod_gets_the_policy_of_its_class() {
        let find = |name: &str| {
            let name = if name.is_empty() { "usual" } else { name };
            let class = json!({
                "metadata": {"name": name}, "value": 7, "preemptionPolicy": "Never",
            });
            Some(class)
        };
        for (class, expected) in [("", "usual"), ("high", "high")] {
            let mut pod = json!({"spec": {"priorityClassName": class}});
            admit(&mut pod, &find).unwrap();
            let expected = json!({
                "priorityClassName": expected, "priority": 7, "preemptionPolicy": "Never",
            });
            assert_eq!(pod["spec"], expected);
        }
        let mut other = json!({"spec": {"preemptionPolicy": "PreemptLowerPriority"}});
        let wrong = admit(&mut other, &find).unwrap_err();
        assert!(
            wrong.starts_with("the string value of PreemptionPolicy"),
            "{wrong}"
        );
    }
}
