//! A pod's status as its kubelet reports it, as a strategic merge patch.

use kube_test_control_plane_api::members::list_at;
use serde_json::{Value, json};

use super::behaviour::Resize;
use super::container::{ContainerState, Role};
use super::ending::phase;
use super::run::{PodRun, Stage};
use super::updating::is_resized;

/// The order in which a kubelet lists the conditions of a pod.
pub(super) const CONDITIONS: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

/// The conditions of a resize that waits, and of one that is carried out.
const RESIZES: [&str; 2] = ["PodResizePending", "PodResizeInProgress"];

/// Reason and message of a condition that is not true.
type Complaint = Option<(&'static str, String)>;

/// Returns the status to write, if it differs from the last written one. [`patch`] turns it
/// into a patch.
pub(super) fn report(run: &mut PodRun, pod: &Value, time: &str) -> Option<Value> {
    let generation = pod.pointer("/metadata/generation").cloned();
    let observed = generation.unwrap_or(json!(1));
    let mut status = json!({
        "phase": phase(run),
        "observedGeneration": observed,
        "startTime": run.start_time,
        "hostIP": run.host_ip,
        // The node may have had another address when the pod started.
        "hostIPs": [{"ip": run.host_ip}, {"$patch": "replace"}],
        "containerStatuses": statuses(run, |role| role == Role::Main),
    });
    if let Some(ip) = &run.pod_ip {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}, {"$patch": "replace"}]);
    }
    if run.containers.iter().any(|c| c.role != Role::Main) {
        status["initContainerStatuses"] = statuses(run, |role| role != Role::Main);
    }
    if !run.ephemeral.is_empty() {
        let statuses = run.ephemeral.iter();
        let statuses = statuses.map(|container| container.status(&run.uid));
        status["ephemeralContainerStatuses"] = statuses.collect();
    }
    if let Some((reason, message)) = run.ending.and_then(|e| e.cause.explanation()) {
        status["reason"] = json!(reason);
        status["message"] = json!(message);
    }
    let (conditions, order) = conditions(run, pod, &observed, time);
    status["conditions"] = json!(conditions);
    status["$setElementOrder/conditions"] = json!(order);
    (run.reported.as_ref() != Some(&status)).then_some(status)
}

fn statuses(run: &PodRun, wanted: impl Fn(Role) -> bool) -> Value {
    run.containers
        .iter()
        .filter(|container| wanted(container.role))
        .map(|container| container.status(&run.uid))
        .collect()
}

/// Returns the conditions, and the order of the pod's merged conditions.
fn conditions(
    run: &mut PodRun,
    pod: &Value,
    observed: &Value,
    time: &str,
) -> (Vec<Value>, Vec<Value>) {
    let is_over = matches!(run.stage, Stage::Ended | Stage::Stopped);
    let sandbox = run.pod_ip.is_some() && !is_over;
    let containers = unready_containers(run);
    let ready = containers.clone().or_else(|| closed_gates(pod));
    let found: [(&'static str, Complaint); 4] = [
        (CONDITIONS[0], (!sandbox).then(|| ("", String::new()))),
        (CONDITIONS[1], incomplete_containers(run)),
        (CONDITIONS[2], ready),
        (CONDITIONS[3], containers),
    ];
    let mut conditions: Vec<Value> = found
        .into_iter()
        .map(|(name, complaint)| condition(run, name, complaint, observed, time))
        .collect();
    if phase(run) == "Succeeded" {
        conditions[1]["reason"] = json!("PodCompleted");
    }
    if !has_condition(pod, "PodScheduled") {
        conditions.push(condition(run, "PodScheduled", None, observed, time));
    }
    if is_disrupted(run) {
        let mut disrupted = condition(run, "DisruptionTarget", None, observed, time);
        disrupted["reason"] = json!("TerminationByKubelet");
        let explained = run.ending.and_then(|ending| ending.cause.explanation());
        disrupted["message"] = json!(explained.map(|(_, message)| message));
        conditions.push(disrupted);
    }
    let resize = resize_condition(run, observed, time);
    let resizing = resize.as_ref().and_then(|it| it["type"].as_str());
    let is_over = |name: &str| RESIZES.contains(&name) && resizing != Some(name);
    for name in RESIZES.iter().filter(|name| is_over(name)) {
        run.transitions.remove(name);
        if has_condition(pod, name) {
            conditions.push(json!({"type": name, "$patch": "delete"}));
        }
    }
    let mut order: Vec<Value> = CONDITIONS
        .iter()
        .map(|name| json!({"type": name}))
        .collect();
    let others = names(pod).filter(|name| !is_over(name));
    let others = others.chain(is_disrupted(run).then_some("DisruptionTarget"));
    for name in others
        .chain(resizing)
        .filter(|name| !CONDITIONS.contains(name))
    {
        if order.iter().all(|entry| entry["type"] != name) {
            order.push(json!({"type": name}));
        }
    }
    conditions.extend(resize);
    (conditions, order)
}

/// Returns the condition of a resize that isn't carried out.
fn resize_condition(run: &mut PodRun, observed: &Value, time: &str) -> Option<Value> {
    if !is_resized(run) {
        return None;
    }
    let [pending, in_progress] = RESIZES;
    let (name, reason, message) = match run.behaviour.resize {
        Resize::Applies => (in_progress, None, None),
        Resize::Deferred => (
            pending,
            Some("Deferred"),
            Some("Node didn't have enough resource: cpu"),
        ),
        Resize::Infeasible => (
            pending,
            Some("Infeasible"),
            Some("Node didn't have enough capacity: cpu"),
        ),
    };
    let mut condition = condition(run, name, None, observed, time);
    condition["reason"] = json!(reason);
    condition["message"] = json!(message);
    Some(condition)
}

fn is_disrupted(run: &PodRun) -> bool {
    run.ending
        .is_some_and(|ending| ending.cause.is_disruption())
}

fn condition(
    run: &mut PodRun,
    name: &'static str,
    complaint: Complaint,
    observed: &Value,
    time: &str,
) -> Value {
    let is_true = complaint.is_none();
    let since = match run.transitions.get(name) {
        Some((before, since)) if *before == is_true => since.clone(),
        _ => time.to_owned(),
    };
    run.transitions.insert(name, (is_true, since.clone()));
    let (reason, message) = complaint.unwrap_or_default();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "type": name,
        "status": if is_true { "True" } else { "False" },
        "observedGeneration": observed,
        "lastTransitionTime": since,
        "reason": some(reason),
        "message": some(&message),
    })
}

fn unready_containers(run: &PodRun) -> Complaint {
    match phase(run) {
        "Failed" => return Some(("PodFailed", String::new())),
        "Succeeded" => return Some(("PodCompleted", String::new())),
        _ => {}
    }
    let unready: Vec<&str> = run
        .containers
        .iter()
        .filter(|container| container.role != Role::Init && !container.ready)
        .map(|container| container.name.as_str())
        .collect();
    let names = unready.join(" ");
    (!unready.is_empty()).then(|| {
        let message = format!("containers with unready status: [{names}]");
        ("ContainersNotReady", message)
    })
}

fn incomplete_containers(run: &PodRun) -> Complaint {
    let incomplete: Vec<&str> = run
        .containers
        .iter()
        .filter(|container| match container.role {
            Role::Main | Role::Ephemeral => false,
            Role::Init => !container.succeeded(),
            Role::Sidecar => matches!(container.state, ContainerState::Waiting { .. }),
        })
        .map(|container| container.name.as_str())
        .collect();
    let names = incomplete.join(" ");
    (!incomplete.is_empty() && phase(run) != "Succeeded").then(|| {
        let message = format!("containers with incomplete status: [{names}]");
        ("ContainersNotInitialized", message)
    })
}

/// Returns the patch that sets a pod's status and removes outdated condition fields.
pub(super) fn patch(status: &Value, pod: &Value) -> Value {
    let mut patch = status.clone();
    let conditions = patch.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let name = condition["type"].clone();
        let old = list_at(pod, "/status/conditions").find(|c| c["type"] == name);
        let Some(map) = condition.as_object_mut() else {
            continue;
        };
        map.retain(|member, value| {
            !value.is_null() || old.is_some_and(|old| old.get(member).is_some())
        });
        if old.is_none() {
            map.insert("lastProbeTime".to_owned(), Value::Null);
        }
    }
    patch
}

/// Reports whether a status was reported for the pod's current spec.
pub(super) fn is_of(status: &Value, pod: &Value) -> bool {
    let generation = pod.pointer("/metadata/generation");
    generation.is_none_or(|generation| status.get("observedGeneration") == Some(generation))
}

/// Reports whether a pod has readiness gates.
pub(super) fn has_gates(pod: &Value) -> bool {
    list_at(pod, "/spec/readinessGates").next().is_some()
}

fn closed_gates(pod: &Value) -> Complaint {
    let complaints: Vec<String> = list_at(pod, "/spec/readinessGates")
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .filter_map(|name| {
            let found = list_at(pod, "/status/conditions").find(|c| c["type"] == name);
            let Some(condition) = found else {
                return Some(format!(
                    "corresponding condition of pod readiness gate {name:?} does not exist."
                ));
            };
            let status = condition.get("status").and_then(Value::as_str);
            (status != Some("True")).then(|| {
                format!(
                    "the status of pod readiness gate {name:?} is not \"True\", but {}",
                    status.unwrap_or_default()
                )
            })
        })
        .collect();
    (!complaints.is_empty()).then(|| ("ReadinessGatesNotReady", complaints.join(", ")))
}

fn has_condition(pod: &Value, name: &str) -> bool {
    names(pod).any(|found| found == name)
}

/// Returns the types of a pod's conditions.
fn names(pod: &Value) -> impl Iterator<Item = &str> {
    list_at(pod, "/status/conditions").filter_map(|condition| condition.get("type")?.as_str())
}
