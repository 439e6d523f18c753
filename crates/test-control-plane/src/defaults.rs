//! Defaults and admission: what the server adds to objects that come in.

use kube_apimachinery::defaults as apimachinery;
use serde_json::{Map, Value, json};

use crate::events;
use crate::kinds::Kind;
use crate::object::{Draft, object_mut};

/// Sets the defaults of the kind.
pub(crate) fn set_defaults(kind: &Kind, draft: &mut Draft) {
    let value = &mut draft.value;
    match kind.storage {
        "statefulsets" => {
            apimachinery::set_stateful_set_defaults(value, false);
            drop_alpha_fields(value);
            let status = object_mut(value, "status");
            status.entry("replicas").or_insert(json!(0));
            status.entry("availableReplicas").or_insert(json!(0));
        }
        "pods" => {
            apimachinery::set_pod_defaults(value);
            set_status_defaults(value);
        }
        "persistentvolumeclaims" => apimachinery::set_claim_defaults(value),
        "persistentvolumes" => {
            default_text(object_mut(value, "status"), "phase", "Pending");
            let spec = object_mut(value, "spec");
            default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
            default_text(spec, "volumeMode", "Filesystem");
        }
        "namespaces" => {
            default_text(object_mut(value, "status"), "phase", "Active");
            object_mut(value, "spec");
            let name = draft.metadata().name().to_owned();
            let labels = object_mut(&mut draft.value["metadata"], "labels");
            labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        }
        "services" => set_service_defaults(value),
        "secrets" => {
            if let Some(map) = value.as_object_mut() {
                default_text(map, "type", "Opaque");
            }
        }
        "events" => events::set_defaults(value),
        _ => {}
    }
}

/// What the type of a pod's status prints even if it is not set.
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

/// What the reference's feature gates, all at their defaults, don't let in.
fn drop_alpha_fields(value: &mut Value) {
    if let Some(rolling) = value
        .pointer_mut("/spec/updateStrategy/rollingUpdate")
        .and_then(Value::as_object_mut)
        && rolling.get("maxUnavailable").is_some_and(Value::is_null)
    {
        rolling.remove("maxUnavailable");
    }
}

fn default_text(map: &mut Map<String, Value>, member: &str, default: &str) {
    if map
        .get(member)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        map.insert(member.to_owned(), json!(default));
    }
}

fn set_service_defaults(value: &mut Value) {
    object_mut(value, "status")
        .entry("loadBalancer")
        .or_insert(json!({}));
    let spec = object_mut(value, "spec");
    default_text(spec, "type", "ClusterIP");
    default_text(spec, "sessionAffinity", "None");
    if spec.get("type") == Some(&json!("ExternalName")) {
        return;
    }
    default_text(spec, "internalTrafficPolicy", "Cluster");
    default_text(spec, "ipFamilyPolicy", "SingleStack");
    spec.entry("ipFamilies").or_insert(json!(["IPv4"]));
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = port.as_object_mut() else {
            continue;
        };
        default_text(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            port.entry("targetPort").or_insert(number);
        }
    }
    if let Some(address) = spec
        .get("clusterIP")
        .filter(|a| a.as_str() != Some(""))
        .cloned()
    {
        spec.entry("clusterIPs").or_insert(json!([address]));
    }
}

/// What admission adds to objects that are created.
pub(crate) fn admit_create(kind: &Kind, draft: &mut Draft) {
    match kind.storage {
        "pods" => admit_pod(&mut draft.value),
        "persistentvolumeclaims" => {
            add_finalizer(draft, "kubernetes.io/pvc-protection");
        }
        "persistentvolumes" => add_finalizer(draft, "kubernetes.io/pv-protection"),
        "namespaces" => {
            let finalizers = object_mut(&mut draft.value, "spec").entry("finalizers");
            let finalizers = finalizers.or_insert(json!([]));
            if let Some(list) = finalizers.as_array_mut()
                && !list.contains(&json!("kubernetes"))
            {
                list.push(json!("kubernetes"));
            }
        }
        _ => {}
    }
}

fn add_finalizer(draft: &mut Draft, finalizer: &str) {
    let list = draft
        .metadata_mut()
        .entry("finalizers")
        .or_insert(json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.contains(&json!(finalizer))
    {
        list.push(json!(finalizer));
    }
}

fn admit_pod(value: &mut Value) {
    let qos = qos_class(value);
    let spec = object_mut(value, "spec");
    spec.entry("priority").or_insert(json!(0));
    spec.entry("preemptionPolicy")
        .or_insert(json!("PreemptLowerPriority"));
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
}

/// The quality-of-service class: guaranteed if every container's limits equal its requests for
/// cpu and memory, best effort if none names any.
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
