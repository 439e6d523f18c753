//! The runtime classes of pods.
//!
//! Upstream: the admission plugin `RuntimeClass`.

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use crate::members::{list, object_mut, text};

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Sets the overhead, the node selector and the tolerations of a pod's class.
///
/// # Errors
///
/// The pod contradicts its class.
pub fn admit_runtime_class(pod: &mut Value, class: &Value) -> Result<(), String> {
    let spec = object_mut(pod, "spec");
    if let Some(overhead) = class
        .get("overhead")
        .map(|overhead| amounts(overhead, "podFixed"))
    {
        let given = spec.get("overhead").and_then(Value::as_object);
        if given.is_some_and(|given| !given.is_empty() && !are_equal(given, &overhead)) {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        spec.insert("overhead".to_owned(), Value::Object(overhead));
    }
    let Some(scheduling) = class.get("scheduling") else {
        return Ok(());
    };
    let mut selector = spec
        .get("nodeSelector")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (key, wanted) in amounts(scheduling, "nodeSelector") {
        let given = selector.entry(&key).or_insert_with(|| wanted.clone());
        if *given != wanted {
            let [wanted, given] =
                [&wanted, &*given].map(|value| value.as_str().unwrap_or_default());
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; \
                 pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
    }
    if !selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), Value::Object(selector));
    }
    let own = spec
        .get("tolerations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let all: Vec<Value> = own
        .chain(list(scheduling, "tolerations"))
        .cloned()
        .collect();
    spec.insert("tolerations".to_owned(), Value::Array(merged(&all)));
    Ok(())
}

/// Checks the overhead of a pod after its admission.
///
/// # Errors
///
/// The reason to reject the pod.
pub fn check_overhead(pod: &Value, class: Option<&Value>) -> Result<(), String> {
    let given = pod
        .pointer("/spec/overhead")
        .filter(|given| !given.is_null());
    let wanted = class.and_then(|class| class.get("overhead"));
    match (wanted, given) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass \
                                defined Overhead"
                .to_owned(),
        ),
        (Some(wanted), given) => {
            let none = Map::new();
            let given = given.and_then(Value::as_object).unwrap_or(&none);
            let is_same = are_equal(given, &amounts(wanted, "podFixed"));
            is_same
                .then_some(())
                .ok_or_else(|| OTHER_OVERHEAD.to_owned())
        }
    }
}

/// Returns a map in an object; empty if it is missing.
fn amounts(holder: &Value, member: &str) -> Map<String, Value> {
    let map = holder.get(member).and_then(Value::as_object);
    map.cloned().unwrap_or_default()
}

/// Compares lists of resources.
fn are_equal(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let amount = |value: &Value| -> Option<Quantity> { value.as_str()?.parse().ok() };
    one.len() == other.len()
        && one.iter().all(|(name, value)| {
            let other = other.get(name);
            other.is_some_and(|other| amount(value) == amount(other))
        })
}

/// Drops tolerations that another one includes.
///
/// Upstream: `MergeTolerations`.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for (i, toleration) in all.iter().enumerate() {
        let mut later = all[i + 1..].iter();
        let is_included = kept.iter().any(|other| includes(other, toleration))
            || later.any(|other| other != toleration && includes(other, toleration));
        if !is_included {
            kept.push(toleration.clone());
        }
    }
    kept
}

/// Returns true if a toleration tolerates all that another one does.
///
/// Upstream: `isSuperset`.
fn includes(toleration: &Value, other: &Value) -> bool {
    if toleration == other {
        return true;
    }
    let same = |member: &str| text(toleration, member) == text(other, member);
    let (operator, effect) = (text(toleration, "operator"), text(toleration, "effect"));
    let any_key = text(toleration, "key").is_empty() && operator == "Exists";
    if !same("key") && !any_key || !same("effect") && !effect.is_empty() {
        return false;
    }
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if effect == "NoExecute"
        && let Some(limit) = seconds(toleration)
        && seconds(other).is_none_or(|seconds| seconds > limit)
    {
        return false;
    }
    match operator {
        "" | "Equal" => text(other, "operator") == "Equal" && same("value"),
        operator => operator == "Exists",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_gets_overhead_and_scheduling_of_its_class() {
        let class = json!({
            "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "k", "operator": "Exists"}],
            },
        });
        let admitted = |spec: Value| {
            let mut pod = json!({"spec": spec});
            admit_runtime_class(&mut pod, &class).map(|()| pod["spec"].take())
        };
        let tolerations = json!([
            {"key": "k", "operator": "Equal", "value": "v"}, {"key": "other", "operator": "Exists"},
        ]);
        let expected = json!({
            "nodeSelector": {"a": "b", "c": "d"},
            "overhead": {"cpu": "10m"},
            "tolerations": [{"key": "other", "operator": "Exists"}, {"key": "k", "operator": "Exists"}],
        });
        let given = json!({
            "nodeSelector": {"c": "d"}, "overhead": {"cpu": "0.01"}, "tolerations": tolerations,
        });
        assert_eq!(admitted(given), Ok(expected));
        let wrong = admitted(json!({"overhead": {"cpu": "1"}})).unwrap_err();
        assert_eq!(wrong, OTHER_OVERHEAD);
        let wrong = admitted(json!({"nodeSelector": {"a": "c"}})).unwrap_err();
        assert_eq!(
            wrong,
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
        );
    }

    #[test]
    fn overhead_must_be_that_of_the_class() {
        let class = json!({"overhead": {"podFixed": {"cpu": "10m"}}});
        let pod = |overhead: Value| json!({"spec": {"overhead": overhead}});
        assert!(check_overhead(&pod(json!({"cpu": "10m"})), Some(&class)).is_ok());
        assert!(check_overhead(&pod(Value::Null), Some(&class)).is_err());
        assert!(check_overhead(&pod(json!({"cpu": "10m"})), None).is_err());
        assert!(check_overhead(&pod(Value::Null), None).is_ok());
    }
}
