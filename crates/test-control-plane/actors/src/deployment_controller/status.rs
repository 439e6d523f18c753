//! The status of a deployment.

use kube_test_control_plane_api::members::{list_at, number_at, text};
use serde_json::{Value, json};

use super::conditions::{self, AVAILABLE, Condition, TIMED_OUT, find, renewed, set};
use super::view::View;
use super::write::Write;
use crate::replica_set_controller::status::difference;

/// The condition of pods that can't be created.
const FAILURE: &str = "ReplicaFailure";

/// Returns the write of the status, if it differs.
///
/// Upstream: `syncRolloutStatus`, `syncDeploymentStatus`
pub(super) fn write(view: &View, is_rollout: bool) -> Vec<Write> {
    let counters = counters(view);
    let mut changed = difference(&view.value, counters.clone());
    let available = set(view, &available(view, &counters));
    let progressing = if is_rollout {
        progressing(view, &counters)
    } else {
        paused(view)
    };
    let conditions: Vec<Value> = [available, progressing, failure(view)]
        .into_iter()
        .flatten()
        .collect();
    if !conditions.is_empty() {
        changed["conditions"] = json!(conditions);
    }
    match changed {
        empty if empty == json!({}) => Vec::new(),
        changed => vec![Write::Status(changed)],
    }
}

/// Upstream: `calculateStatus` of the deployment controller.
fn counters(view: &View) -> Value {
    let available = view.sum("availableReplicas");
    let new = view.new.as_ref();
    json!({
        "observedGeneration": number_at(&view.value, "/metadata/generation"),
        "replicas": view.sum("replicas"),
        "updatedReplicas": new.map_or(0, |set| number_at(&set.value, "/status/replicas")),
        "readyReplicas": view.sum("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": (view.all_replicas() - available).max(0),
    })
}

fn available(view: &View, counters: &Value) -> Condition {
    let has_enough =
        number_at(counters, "/availableReplicas") >= view.replicas - view.max_unavailable;
    let (status, reason, message) = if has_enough {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    Condition {
        kind: "Available",
        status,
        reason,
        message: message.to_owned(),
    }
}

/// Returns the condition of a rollout.
fn progressing(view: &View, counters: &Value) -> Option<Value> {
    if !conditions::has_deadline(view) {
        return find(view, "Progressing").map(removed);
    }
    let current = find(view, "Progressing");
    let reason = current.map(|it| text(it, "reason")).unwrap_or_default();
    let of = |member: &str| number_at(counters, &format!("/{member}"));
    if of("replicas") == of("updatedReplicas") && reason == AVAILABLE {
        return None;
    }
    let subject = match &view.new {
        Some(set) => format!("ReplicaSet {:?}", &*set.key.name),
        None => format!("Deployment {:?}", view.name()),
    };
    if view.is_complete() {
        let message = format!("{subject} has successfully progressed.");
        return set(view, &Condition::progressing("True", AVAILABLE, message));
    }
    if has_progressed(view, counters) {
        let message = format!("{subject} is progressing.");
        let condition = Condition::progressing("True", "ReplicaSetUpdated", message);
        return Some(renewed(view, &condition));
    }
    if conditions::is_late(view) {
        let message = format!("{subject} has timed out progressing.");
        return set(view, &Condition::progressing("False", TIMED_OUT, message));
    }
    if current.is_none()
        && let Some(new) = &view.new
    {
        let message = format!("Found new replica set {:?}", &*new.key.name);
        let condition = Condition::progressing("True", "FoundNewReplicaSet", message);
        return set(view, &condition);
    }
    if reason == "DeploymentPaused" {
        let message = "Deployment is resumed".to_owned();
        let condition = Condition::progressing("Unknown", "DeploymentResumed", message);
        return set(view, &condition);
    }
    None
}

/// Upstream: `DeploymentProgressing`
fn has_progressed(view: &View, counters: &Value) -> bool {
    let before = |member: &str| number_at(&view.value, &format!("/status/{member}"));
    let now = |member: &str| number_at(counters, &format!("/{member}"));
    let old = |of: &dyn Fn(&str) -> i64| of("replicas") - of("updatedReplicas");
    let more = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    more.iter().any(|member| now(member) > before(member)) || old(&now) < old(&before)
}

/// Returns the condition of a paused deployment.
///
/// Upstream: `checkPausedConditions`
fn paused(view: &View) -> Option<Value> {
    let is_late = find(view, "Progressing").is_some_and(|it| text(it, "reason") == TIMED_OUT);
    if !view.is_paused || is_late || !conditions::has_deadline(view) {
        return None;
    }
    let message = "Deployment is paused".to_owned();
    let condition = Condition::progressing("Unknown", "DeploymentPaused", message);
    set(view, &condition)
}

/// Copies the failure of a replica set.
fn failure(view: &View) -> Option<Value> {
    let newest_first = view.new.iter().chain(view.old.iter().rev());
    let mut failures = newest_first.filter_map(|set| {
        let mut conditions = list_at(&set.value, "/status/conditions");
        conditions.find(|it| text(it, "type") == FAILURE)
    });
    let current = find(view, FAILURE);
    match (failures.next(), current) {
        (Some(_), Some(_)) => None,
        (Some(failure), None) => {
            let mut failure = failure.clone();
            failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
            Some(failure)
        }
        (None, current) => current.map(removed),
    }
}

fn removed(condition: &Value) -> Value {
    json!({"type": condition["type"], "$patch": "delete"})
}
