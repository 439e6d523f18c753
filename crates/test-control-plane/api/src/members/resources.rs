//! Amounts of the resources of pods.

use std::collections::BTreeMap;

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use crate::members::{list, text};

/// Quantities by the name of the resource.
pub(crate) type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// Returns the `limits` or `requests` of resources.
pub(crate) fn amounts<'a>(resources: &'a Value, list: &str) -> Option<&'a Map<String, Value>> {
    resources.get(list)?.as_object()
}

fn of_container<'a>(container: &'a Value, list: &str) -> Amounts<'a> {
    let resources = container.get("resources").unwrap_or(&Value::Null);
    let found = amounts(resources, list).into_iter().flatten();
    let parsed = found.filter_map(|(name, amount)| Some((&**name, amount.as_str()?.parse().ok()?)));
    parsed.collect()
}

fn add<'a>(sum: &mut Amounts<'a>, more: &Amounts<'a>) {
    for (name, amount) in more {
        let old = sum.entry(name).or_default();
        *old = old.checked_add(amount).unwrap_or_default();
    }
}

/// Returns the `limits` or `requests` that the containers of a pod need together at some time.
///
/// Upstream: `AggregateContainerRequests`, `AggregateContainerLimits`.
pub(crate) fn aggregate<'a>(spec: &'a Value, list_name: &str) -> Amounts<'a> {
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut sum, &of_container(container, list_name));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let own = of_container(container, list_name);
        let mut now = sidecars.clone();
        add(&mut now, &own);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, &own);
            sidecars.clone_from(&now);
        }
        raise(&mut most, now);
    }
    raise(&mut sum, most);
    sum
}

/// Raises amounts to those of `other`.
fn raise<'a>(amounts: &mut Amounts<'a>, other: Amounts<'a>) {
    for (name, amount) in other {
        let old = amounts.entry(name).or_default();
        if amount > *old {
            *old = amount;
        }
    }
}

/// The resources that determine the quality-of-service class.
const OF_QUALITY: [&str; 2] = ["cpu", "memory"];

/// Adds the amounts that determine the class, and returns their number.
fn add_of_quality<'a>(sum: &mut Amounts<'a>, mut more: Amounts<'a>) -> usize {
    let zero = Quantity::default();
    more.retain(|name, amount| OF_QUALITY.contains(name) && *amount > zero);
    add(sum, &more);
    more.len()
}

/// Returns the quality-of-service class: guaranteed if all limits for cores and memory are given and
/// equal the requests, best effort without any amounts. The amounts are those of the whole pod, if
/// it has some, or else of its containers.
///
/// Upstream: `ComputePodQOS`.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    if spec.get("resources").is_some() {
        add_of_quality(&mut requests, of_container(spec, "requests"));
        let given = of_container(spec, "limits");
        let is_given = !given.is_empty();
        let count = add_of_quality(&mut limits, given);
        all_limited = !is_given || count == OF_QUALITY.len();
    } else {
        let containers = list(spec, "containers").chain(list(spec, "initContainers"));
        for container in containers {
            add_of_quality(&mut requests, of_container(container, "requests"));
            let count = add_of_quality(&mut limits, of_container(container, "limits"));
            all_limited &= count == OF_QUALITY.len();
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_that_run_together_add_up() {
        let container = |cpu: &str, policy: Value| json!({"restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({
            "containers": [container("1", Value::Null), container("500m", Value::Null)],
            "initContainers": [container("1", json!("Always")), container("2", Value::Null)],
        });
        let found = aggregate(&spec, "requests");
        assert_eq!(found["cpu"].to_string(), "3");
        let alone = json!({"initContainers": [container("2", Value::Null)]});
        assert_eq!(aggregate(&alone, "requests")["cpu"].to_string(), "2");
        assert!(aggregate(&alone, "limits").is_empty());
    }

    #[test]
    fn classes_compare_limits_and_requests() {
        let of = |resources: Value| {
            qos_class(&json!({"spec": {"containers": [{"resources": resources}]}}))
        };
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(of(json!({})), "BestEffort");
        assert_eq!(of(json!({"limits": {"cpu": "0"}})), "BestEffort");
        assert_eq!(of(json!({"limits": both, "requests": both})), "Guaranteed");
        assert_eq!(of(json!({"limits": both})), "Burstable");
        let pod =
            json!({"spec": {"resources": {"limits": both, "requests": both}, "containers": [{}]}});
        assert_eq!(qos_class(&pod), "Guaranteed");
    }
}
