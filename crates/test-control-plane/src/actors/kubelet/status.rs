//! The statuses that a kubelet reports, as strategic patches.

use serde_json::{Value, json};

/// Whether a pod's condition is true.
pub(super) fn condition_is_true(pod: &Value, name: &str) -> bool {
    conditions(pod).any(|c| {
        c.get("type").and_then(Value::as_str) == Some(name)
            && c.get("status").and_then(Value::as_str) == Some("True")
    })
}

/// Whether every readiness gate of a pod is true.
pub(super) fn gates_are_open(pod: &Value) -> bool {
    list(pod, "/spec/readinessGates")
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .all(|name| condition_is_true(pod, name))
}

fn conditions(pod: &Value) -> impl Iterator<Item = &Value> {
    list(pod, "/status/conditions")
}

fn list<'a>(pod: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    pod.pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn generation(pod: &Value) -> Value {
    pod.pointer("/metadata/generation")
        .cloned()
        .unwrap_or(json!(1))
}

fn condition(pod: &Value, name: &str, value: bool, now: &str) -> Value {
    let mut condition = json!({
        "type": name,
        "status": if value { "True" } else { "False" },
        "lastProbeTime": null,
        "lastTransitionTime": now,
        "observedGeneration": generation(pod),
    });
    if !value {
        condition["reason"] = json!("ContainersNotReady");
        let names: Vec<&str> = list(pod, "/spec/containers")
            .filter_map(|c| c.get("name")?.as_str())
            .collect();
        let message = format!("containers with unready status: [{}]", names.join(" "));
        condition["message"] = json!(message);
    } else if condition_exists(pod, name) {
        // Merged into the old condition, whose reason must go.
        condition["reason"] = Value::Null;
        condition["message"] = Value::Null;
    }
    condition
}

fn condition_exists(pod: &Value, name: &str) -> bool {
    conditions(pod).any(|c| c.get("type").and_then(Value::as_str) == Some(name))
}

fn container_statuses(pod: &Value, ready: bool, state: &Value) -> Vec<Value> {
    let uid = pod
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let running = state.get("running").is_some();
    list(pod, "/spec/containers")
        .map(|container| {
            let name = container
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let image = container
                .get("image")
                .and_then(Value::as_str)
                .unwrap_or_default();
            json!({
                "name": name,
                "image": image,
                "imageID": format!("test://{image}"),
                "containerID": format!("test://{uid}/{name}"),
                "ready": ready,
                "started": running,
                "restartCount": 0,
                "state": state,
                "lastState": {},
            })
        })
        .collect()
}

/// Running, not ready yet. `address` numbers the pod's IP address.
pub(super) fn started(pod: &Value, now: &str, address: u32) -> Value {
    let ip = std::net::Ipv4Addr::from(0x0af4_0000_u32.wrapping_add(address & 0xffff)).to_string();
    let host = "192.0.2.1";
    json!({
        "phase": "Running",
        "observedGeneration": generation(pod),
        "startTime": now,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [
            condition(pod, "PodReadyToStartContainers", true, now),
            condition(pod, "Initialized", true, now),
            condition(pod, "Ready", false, now),
            condition(pod, "ContainersReady", false, now),
        ],
        "containerStatuses": container_statuses(pod, false, &json!({"running": {"startedAt": now}})),
    })
}

/// Running, ready or not.
pub(super) fn with_readiness(pod: &Value, now: &str, ready: bool) -> Value {
    let since = pod
        .pointer("/status/startTime")
        .cloned()
        .unwrap_or(json!(now));
    let state = json!({"running": {"startedAt": since}});
    json!({
        "observedGeneration": generation(pod),
        "conditions": [
            condition(pod, "Ready", ready, now),
            condition(pod, "ContainersReady", ready, now),
        ],
        "containerStatuses": container_statuses(pod, ready, &state),
    })
}

fn terminated(now: &str, code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}})
}

/// At its end: `Failed` or `Succeeded`.
pub(super) fn ended(pod: &Value, now: &str, phase: &str) -> Value {
    let failed = phase == "Failed";
    let (code, reason) = if failed {
        (1, "Error")
    } else {
        (0, "Completed")
    };
    let mut status = stopped(pod, now);
    status["phase"] = json!(phase);
    status["containerStatuses"] = json!(container_statuses(
        pod,
        false,
        &terminated(now, code, reason)
    ));
    status
}

/// Stopped because it is deleted.
pub(super) fn stopped(pod: &Value, now: &str) -> Value {
    let state = terminated(now, 0, "Completed");
    json!({
        "conditions": [
            condition(pod, "Ready", false, now),
            condition(pod, "ContainersReady", false, now),
        ],
        "containerStatuses": container_statuses(pod, false, &state),
    })
}
