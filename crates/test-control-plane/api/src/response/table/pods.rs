//! The cells of pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::texts::{list, text};
use crate::kinds::Kind;

pub(super) fn ready(pod: &Value) -> String {
    let found = Containers::of(pod);
    format!("{}/{}", found.ready, found.total)
}

pub(super) fn restarts(pod: &Value, now: Timestamp) -> String {
    match Containers::of(pod).restarts {
        Restarts {
            count,
            last: Some(time),
        } if count > 0 => format!("{count} ({} ago)", age(time, now)),
        Restarts { count, .. } => count.to_string(),
    }
}

pub(super) fn gates(pod: &Value) -> String {
    let gates: Vec<&str> = list(pod, "/spec/readinessGates")
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .collect();
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, gate)).count();
    format!("{open}/{}", gates.len())
}

/// The summary of a pod's containers.
///
/// Upstream: `printPod`.
struct Containers<'a> {
    /// Number of ready containers.
    ready: usize,
    /// Number of containers and sidecars; other init containers don't count.
    total: usize,
    restarts: Restarts<'a>,
    /// The pod's status according to its containers, if they have one.
    reason: Option<String>,
}

impl<'a> Containers<'a> {
    fn of(pod: &'a Value) -> Self {
        let init = Init::of(pod);
        let total = list(pod, "/spec/containers").count() + init.sidecars;
        if let Some(reason) = init.reason
            && !is_true(pod, "Initialized")
        {
            return Self {
                ready: init.ready,
                total,
                restarts: init.restarts,
                reason: Some(reason),
            };
        }
        let (mut ready, mut reason) = (init.ready, None);
        let (mut restarts, mut has_running) = (init.sidecar_restarts, false);
        for status in list(pod, "/status/containerStatuses") {
            restarts.add(status);
            let found = container_reason(status);
            if found.is_none() && is_ready(status) && status.pointer("/state/running").is_some() {
                has_running = true;
                ready += 1;
            }
            // The first container with a reason wins.
            reason = reason.or(found);
        }
        if has_running && reason.as_deref() == Some("Completed") {
            let shown = if is_true(pod, "Ready") {
                "Running"
            } else {
                "NotReady"
            };
            reason = Some(shown.to_owned());
        }
        Self {
            ready,
            total,
            restarts,
            reason,
        }
    }
}

/// The summary of a pod's init containers.
#[derive(Default)]
struct Init<'a> {
    /// Number of sidecars.
    sidecars: usize,
    /// Number of ready sidecars.
    ready: usize,
    restarts: Restarts<'a>,
    sidecar_restarts: Restarts<'a>,
    /// The init progress of a pod that isn't initialized.
    reason: Option<String>,
}

impl<'a> Init<'a> {
    fn of(pod: &'a Value) -> Self {
        let sidecars: Vec<&str> = list(pod, "/spec/initContainers")
            .filter(|container| text(container, "/restartPolicy") == "Always")
            .map(|container| text(container, "/name"))
            .collect();
        let mut found = Self {
            sidecars: sidecars.len(),
            ..Self::default()
        };
        for (i, status) in list(pod, "/status/initContainerStatuses").enumerate() {
            found.restarts.add(status);
            let is_sidecar = sidecars.contains(&text(status, "/name"));
            if is_sidecar {
                found.sidecar_restarts.add(status);
            }
            if number(status, "/state/terminated/exitCode") == Some(0) {
                continue;
            }
            if is_sidecar && status.get("started") == Some(&Value::Bool(true)) {
                found.ready += usize::from(is_ready(status));
                continue;
            }
            let reason = container_reason(status).filter(|reason| reason != "PodInitializing");
            let count = list(pod, "/spec/initContainers").count();
            let reached = reason.unwrap_or_else(|| format!("{i}/{count}"));
            found.reason = Some(format!("Init:{reached}"));
            break;
        }
        found
    }
}

/// The number of container restarts and the time of the last one.
#[derive(Default)]
struct Restarts<'a> {
    count: i64,
    last: Option<&'a str>,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count += number(status, "/restartCount").unwrap_or(0);
        let ended = status.pointer("/lastState/terminated/finishedAt");
        // All times have the same format, so text order is time order.
        self.last = self.last.max(ended.and_then(Value::as_str));
    }
}

fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer)?.as_i64()
}

fn is_ready(status: &Value) -> bool {
    status.get("ready") == Some(&Value::Bool(true))
}

fn is_true(pod: &Value, condition: &str) -> bool {
    list(pod, "/status/conditions")
        .any(|c| text(c, "/type") == condition && text(c, "/status") == "True")
}

pub(super) fn status(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    let reported = text(pod, "/status/reason");
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        if reported == "NodeLost" {
            return "Unknown".to_owned();
        }
        if !matches!(phase, "Succeeded" | "Failed") {
            return "Terminating".to_owned();
        }
    }
    if let Some(reason) = Containers::of(pod).reason {
        return reason;
    }
    let is_gated = list(pod, "/status/conditions")
        .any(|c| text(c, "/type") == "PodScheduled" && text(c, "/reason") == "SchedulingGated");
    let shown = match (is_gated, reported) {
        (true, _) => "SchedulingGated",
        (false, "") => phase,
        (false, reported) => reported,
    };
    shown.to_owned()
}

/// Returns a container's waiting or termination reason, or `None` if it runs or has no state.
fn container_reason(status: &Value) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let terminated = status
        .pointer("/state/terminated")
        .filter(|t| !t.is_null())?;
    let reason = text(terminated, "/reason");
    if !reason.is_empty() {
        return Some(reason.to_owned());
    }
    Some(match number(terminated, "/signal").unwrap_or(0) {
        0 => format!("ExitCode:{}", number(terminated, "/exitCode").unwrap_or(0)),
        signal => format!("Signal:{signal}"),
    })
}

/// Returns the row conditions of a pod that has ended.
pub(super) fn row_conditions(kind: &Kind, object: &Value) -> Option<Value> {
    if &*kind.storage != "pods" {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cells Ready, Status and Restarts of a pod with the init container `a`, the
    /// sidecar `b` and the container `c`.
    fn shown(status: &Value) -> [String; 3] {
        let pod = json!({
            "spec": {
                "initContainers": [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}],
                "containers": [{"name": "c"}],
            },
            "status": status,
        });
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        [ready(&pod), super::status(&pod), restarts(&pod, now)]
    }

    fn of(name: &str, state: &Value) -> Value {
        json!({"name": name, "state": state})
    }

    #[test]
    fn status_shows_init_progress() {
        let running = json!({"running": {}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let ended = |code: i64| json!({"terminated": {"exitCode": code}});
        for (a, b, reason) in [
            (&running, &waiting("PodInitializing"), "Init:0/2"),
            (&waiting("PodInitializing"), &running, "Init:0/2"),
            (
                &waiting("CrashLoopBackOff"),
                &running,
                "Init:CrashLoopBackOff",
            ),
            (&ended(3), &running, "Init:ExitCode:3"),
            (
                &json!({"terminated": {"signal": 9, "exitCode": 137}}),
                &running,
                "Init:Signal:9",
            ),
            (&ended(0), &running, "Init:1/2"),
        ] {
            let status = json!({
                "phase": "Pending",
                "initContainerStatuses": [of("a", a), of("b", b)],
                "containerStatuses": [of("c", &waiting("PodInitializing"))],
            });
            assert_eq!(shown(&status), ["0/2", reason, "0"], "{status}");
        }
    }

    #[test]
    fn sidecars_count_as_containers() {
        let restarted = |count: i64, at: &str| {
            let last = json!({"terminated": {"finishedAt": format!("2026-01-01T00:00:{at}Z")}});
            (count, last)
        };
        let status = |name: &str, state: &Value, (count, last): (i64, Value)| {
            let mut status = of(name, state);
            status["ready"] = json!(true);
            status["started"] = json!(true);
            status["restartCount"] = json!(count);
            status["lastState"] = last;
            status
        };
        let running = json!({"running": {}});
        let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let pod = json!({
            "phase": "Running",
            "initContainerStatuses": [
                status("a", &done, restarted(5, "50")),
                status("b", &running, restarted(1, "30")),
            ],
            "containerStatuses": [status("c", &running, restarted(2, "10"))],
        });
        assert_eq!(shown(&pod), ["2/2", "Running", "3 (30s ago)"]);
        // Containers don't affect the status of an uninitialized pod.
        let mut early = pod.clone();
        early["initContainerStatuses"][1]["started"] = json!(false);
        assert_eq!(shown(&early), ["0/2", "Init:1/2", "6 (10s ago)"]);
    }

    #[test]
    fn first_container_that_is_not_running_sets_the_status() {
        let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let mut running = of("c", &json!({"running": {}}));
        running["ready"] = json!(true);
        let mut pod = json!({"phase": "Running", "containerStatuses": [of("d", &ended), running]});
        assert_eq!(shown(&pod)[..2], ["1/2", "NotReady"]);
        pod["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        assert_eq!(shown(&pod)[1], "Running");
        pod["containerStatuses"][1] = of("c", &json!({"waiting": {"reason": "ErrImagePull"}}));
        assert_eq!(shown(&pod)[..2], ["0/2", "Completed"]);
    }

    #[test]
    fn gates_and_reasons_show_without_container_reason() {
        let gated = json!({"type": "PodScheduled", "reason": "SchedulingGated"});
        let pod = json!({"phase": "Pending", "conditions": [gated]});
        assert_eq!(shown(&pod)[1], "SchedulingGated");
        let pod = json!({"phase": "Failed", "reason": "Evicted"});
        assert_eq!(shown(&pod)[1], "Evicted");
    }
}
