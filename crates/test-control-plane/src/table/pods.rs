//! The cells of pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::cells::{list, or_none, text};
use crate::kinds::Kind;

/// Upstream: `printPod`.
pub(super) fn cells(pod: &Value, created: &str, now: Timestamp) -> Vec<Value> {
    let containers = list(pod, "/spec/containers").count();
    let statuses: Vec<&Value> = list(pod, "/status/containerStatuses").collect();
    let ready = statuses.iter().filter(|s| is_ready_and_running(s)).count();
    let restarts: i64 = statuses
        .iter()
        .filter_map(|s| s.get("restartCount")?.as_i64())
        .sum();
    let last_restart = statuses
        .iter()
        .filter_map(|s| s.pointer("/lastState/terminated/finishedAt")?.as_str())
        .max();
    let restarts = match last_restart {
        Some(time) if restarts > 0 => format!("{restarts} ({} ago)", age(time, now)),
        _ => restarts.to_string(),
    };
    let gates: Vec<&str> = list(pod, "/spec/readinessGates")
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .collect();
    let open = gates.iter().filter(|gate| is_true(pod, gate)).count();
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        format!("{open}/{}", gates.len())
    };
    vec![
        json!(text(pod, "/metadata/name")),
        json!(format!("{ready}/{containers}")),
        json!(status(pod, &statuses)),
        json!(restarts),
        json!(created),
        json!(or_none(text(pod, "/status/podIP"))),
        json!(or_none(text(pod, "/spec/nodeName"))),
        json!(or_none(text(pod, "/status/nominatedNodeName"))),
        json!(gates),
    ]
}

fn is_ready_and_running(status: &Value) -> bool {
    status.get("ready") == Some(&Value::Bool(true)) && status.pointer("/state/running").is_some()
}

fn is_true(pod: &Value, condition: &str) -> bool {
    list(pod, "/status/conditions")
        .any(|c| text(c, "/type") == condition && text(c, "/status") == "True")
}

fn status(pod: &Value, statuses: &[&Value]) -> String {
    let phase = text(pod, "/status/phase");
    let reported = text(pod, "/status/reason");
    let mut reason = if reported.is_empty() { phase } else { reported }.to_owned();
    let gated = list(pod, "/status/conditions")
        .any(|c| text(c, "/type") == "PodScheduled" && text(c, "/reason") == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    // The first container has the last word.
    for status in statuses.iter().rev() {
        if let Some(found) = container_reason(status) {
            reason = found;
        }
    }
    if reason == "Completed" && statuses.iter().any(|s| is_ready_and_running(s)) {
        let shown = if is_true(pod, "Ready") {
            "Running"
        } else {
            "NotReady"
        };
        shown.clone_into(&mut reason);
    }
    if text(pod, "/metadata/deletionTimestamp").is_empty() {
        reason
    } else if reported == "NodeLost" {
        "Unknown".to_owned()
    } else if matches!(phase, "Succeeded" | "Failed") {
        reason
    } else {
        "Terminating".to_owned()
    }
}

fn container_reason(status: &Value) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let terminated = status.pointer("/state/terminated")?;
    let reason = text(terminated, "/reason");
    if !reason.is_empty() {
        return Some(reason.to_owned());
    }
    let number = |member: &str| terminated.get(member).and_then(Value::as_i64).unwrap_or(0);
    Some(match number("signal") {
        0 => format!("ExitCode:{}", number("exitCode")),
        signal => format!("Signal:{signal}"),
    })
}

/// The conditions of the row of a pod that has ended.
pub(super) fn row_conditions(kind: &Kind, object: &Value) -> Option<Value> {
    if kind.storage != "pods" {
        return None;
    }
    let (reason, message) = match text(object, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{
        "type": "Completed",
        "status": "True",
        "reason": reason,
        "message": message,
    }]))
}
