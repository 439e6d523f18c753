//! Pod defaults: members that the type always prints, and admission.

use kube_apimachinery::defaults;
use serde_json::{Map, Value, json};

use crate::members::{list_at, object_mut};

/// Sets the defaults of a pod.
pub(super) fn set_defaults(pod: &mut Value) {
    defaults::set_pod_defaults(pod);
    set_status_defaults(pod);
}

/// Completes the addresses: `podIP` is the first of `podIPs`.
fn set_status_defaults(pod: &mut Value) {
    if let Some(address) = pod
        .pointer("/status/podIP")
        .filter(|a| !a.is_null())
        .cloned()
        && pod.pointer("/status/podIPs/0/ip") != Some(&address)
    {
        pod["status"]["podIPs"] = json!([{"ip": address}]);
    }
}

/// Gives the service account of a pod or a pod template both names. The newer one wins.
///
/// Upstream: `Convert_v1_PodSpec_To_core_PodSpec`
pub(super) fn name_service_account(pod: &mut Value) {
    const NAMES: [&str; 2] = ["serviceAccountName", "serviceAccount"];
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let is_text = |value: Option<&Value>| value.is_none_or(|v| v.is_string() || v.is_null());
    if !NAMES.iter().all(|name| is_text(spec.get(*name))) {
        return;
    }
    let names = NAMES.iter().filter_map(|name| spec.get(*name)?.as_str());
    let account = names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .next();
    if let Some(account) = account {
        for name in NAMES {
            spec.insert(name.to_owned(), json!(account));
        }
    }
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
    for (member, default) in [("phase", "Pending"), ("qosClass", qos)] {
        let found = status.entry(member).or_insert(Value::Null);
        if found.as_str().is_none_or(str::is_empty) {
            *found = json!(default);
        }
    }
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
