//! Pod defaults: members that the type always prints, and admission.

use kube_apimachinery::defaults;
use serde_json::{Map, Value, json};

use super::default_text;
use crate::members::{list_at, object_mut};

/// Sets the defaults of a pod.
pub(super) fn set_defaults(pod: &mut Value) {
    defaults::set_pod_defaults(pod);
    set_status_defaults(pod);
}

/// Fills in the status members that the type always prints.
fn set_status_defaults(pod: &mut Value) {
    let conditions = pod.pointer_mut("/status/conditions");
    for condition in objects(conditions) {
        for member in ["lastProbeTime", "lastTransitionTime"] {
            condition.entry(member).or_insert(Value::Null);
        }
    }
    if let Some(address) = pod
        .pointer("/status/podIP")
        .filter(|a| !a.is_null())
        .cloned()
        && pod.pointer("/status/podIPs/0/ip") != Some(&address)
    {
        pod["status"]["podIPs"] = json!([{"ip": address}]);
    }
    for list in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for status in objects(pod.pointer_mut(&format!("/status/{list}"))) {
            for (member, zero) in [
                ("image", json!("")),
                ("imageID", json!("")),
                ("lastState", json!({})),
                ("ready", json!(false)),
                ("restartCount", json!(0)),
                ("state", json!({})),
            ] {
                status.entry(member).or_insert(zero);
            }
            for state in ["state", "lastState"] {
                if let Some(state) = status.get_mut(state) {
                    set_state_defaults(state);
                }
            }
        }
    }
}

fn set_state_defaults(state: &mut Value) {
    if let Some(running) = state.get_mut("running").and_then(Value::as_object_mut) {
        running.entry("startedAt").or_insert(Value::Null);
    }
    if let Some(terminated) = state.get_mut("terminated").and_then(Value::as_object_mut) {
        terminated.entry("exitCode").or_insert(json!(0));
        for member in ["startedAt", "finishedAt"] {
            terminated.entry(member).or_insert(Value::Null);
        }
    }
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

/// Sets tolerations and the quality-of-service class, and marks pods with scheduling gates.
pub(super) fn admit_pod(value: &mut Value) {
    let qos = qos_class(value);
    let is_gated = list_at(value, "/spec/schedulingGates").len() > 0;
    let spec = object_mut(value, "spec");
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
    let status = object_mut(value, "status");
    default_text(status, "phase", "Pending");
    default_text(status, "qosClass", qos);
    if is_gated {
        gate(status);
    }
}

/// Sets the condition for a pod with scheduling gates, unless the pod has that condition already.
fn gate(status: &mut Map<String, Value>) {
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
            "lastTransitionTime": null,
        }));
    }
}

/// Returns the quality-of-service class: guaranteed if each container's cpu and memory limits equal
/// its requests, best effort if no container has any.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"]
        .into_iter()
        .filter_map(|pointer| pod.pointer(pointer)?.as_array())
        .flatten();
    let (mut any, mut all) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let of = |list: &str| container.pointer(&format!("/resources/{list}/{resource}"));
            let (limit, request) = (of("limits"), of("requests"));
            any |= limit.is_some() || request.is_some();
            all &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
