//! Pod defaults: fields that the type always prints, and admission.

use kube_apimachinery::defaults;
use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::members::resources::{aggregate, amounts, qos_class};
use crate::members::{list_at, object_mut};

/// Start of the names of huge pages.
const HUGE_PAGES: &str = "hugepages-";

/// Sets the defaults of a pod.
pub(super) fn set_defaults(pod: &mut Value) {
    defaults::set_pod_defaults(pod);
    set_pod_resources(pod);
    set_status_defaults(pod);
    super::aliases::of_pod(pod);
    let grace = pod.pointer_mut("/spec/terminationGracePeriodSeconds");
    if let Some(grace) = grace.filter(|grace| grace.as_i64().is_some_and(|it| it < 0)) {
        *grace = json!(1);
    }
}

/// Completes the resources of a whole pod that has some: limits of huge pages from those of its
/// containers, requests from those of its containers or from its limits.
///
/// Upstream: `defaultHugePagePodLimits`, `defaultPodRequests`.
fn set_pod_resources(pod: &mut Value) {
    let Some(spec) = pod.get("spec") else { return };
    let null = Value::Null;
    let resources = spec.get("resources").unwrap_or(&null);
    let own = |list: &str| amounts(resources, list).cloned().unwrap_or_default();
    let (mut limits, mut requests) = (own("limits"), own("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, sum) in aggregate(spec, "limits") {
        if name.starts_with(HUGE_PAGES) && !requests.contains_key(name) {
            limits.entry(name).or_insert(json!(sum.to_string()));
        }
    }
    if !limits.is_empty() {
        for (name, sum) in aggregate(spec, "requests") {
            if matches!(name, "cpu" | "memory") {
                requests.entry(name).or_insert(json!(sum.to_string()));
            }
        }
        let supported =
            |name: &str| matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES);
        for (name, limit) in limits.iter().filter(|(name, _)| supported(name)) {
            requests.entry(name).or_insert(limit.clone());
        }
    }
    for (list, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            pod["spec"]["resources"][list] = Value::Object(amounts);
        }
    }
}

/// Completes the addresses: `podIP` is the first of `podIPs`. Rounds resources to thousandths.
fn set_status_defaults(pod: &mut Value) {
    let first = pod.pointer("/status/podIPs/0/ip").cloned();
    let address = pod
        .pointer("/status/podIP")
        .filter(|it| **it != "" && !it.is_null())
        .cloned();
    if let Some(address) = address {
        if first.as_ref() != Some(&address) {
            pod["status"]["podIPs"] = json!([{"ip": address}]);
        }
    } else if let Some(first) = first {
        pod["status"]["podIP"] = first;
    }
    let Some(status) = pod.get_mut("status") else {
        return;
    };
    round_up(status.get_mut("allocatedResources"));
    for member in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        let containers = status.get_mut(member).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            round_up(container.get_mut("allocatedResources"));
        }
    }
}

/// Upstream: `SetDefaults_ResourceList`.
fn round_up(quantities: Option<&mut Value>) {
    let quantities = quantities.and_then(Value::as_object_mut);
    for quantity in quantities.into_iter().flat_map(Map::values_mut) {
        let parsed: Option<Quantity> = quantity.as_str().and_then(|text| text.parse().ok());
        if let Some(mut parsed) = parsed {
            parsed.round_up_milli();
            *quantity = json!(parsed.to_string());
        }
    }
}

/// Tolerates a while that a node fails, unless the pod has such tolerations.
///
/// Upstream: the admission plugin `DefaultTolerationSeconds`.
pub(super) fn add_tolerations(pod: &mut Value) {
    let spec = object_mut(pod, "spec");
    let tolerations = spec.entry("tolerations").or_insert(json!([]));
    if let Some(list) = tolerations.as_array_mut() {
        for key in [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ] {
            let tolerated = list.iter().any(|t| {
                let matches_key = t.get("key").is_none_or(|k| k == key || k == "");
                let effect = t.get("effect").and_then(Value::as_str).unwrap_or("");
                matches_key && matches!(effect, "" | "NoExecute")
            });
            if !tolerated {
                list.push(json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }));
            }
        }
    }
}

/// Sets the phase and the quality-of-service class, and marks pods with scheduling gates.
pub(super) fn begin(value: &mut Value, now: &str) {
    let qos = qos_class(value);
    let is_gated = list_at(value, "/spec/schedulingGates").len() > 0;
    let status = object_mut(value, "status");
    for (member, default) in [("phase", "Pending"), ("qosClass", qos)] {
        let found = status.entry(member).or_insert(Value::Null);
        if found.as_str().is_none_or(str::is_empty) {
            *found = json!(default);
        }
    }
    if is_gated {
        gate(status, now);
    }
}

/// Sets the condition for a pod with scheduling gates, unless the pod has that condition already.
fn gate(status: &mut Map<String, Value>, now: &str) {
    let conditions = status.entry("conditions").or_insert(json!([]));
    if let Some(list) = conditions.as_array_mut()
        && !list.iter().any(|c| c["type"] == "PodScheduled")
    {
        list.push(json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        }));
    }
}
