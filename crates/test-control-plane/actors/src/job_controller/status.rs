//! The status of a job.

use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, text_at};
use serde_json::{Value, json};

use super::finish::{Target, holds};
use super::indexes;
use super::pods::JobPod;
use super::view::View;

/// Returns the status that names the pods to count, unless it names them already.
pub(super) fn uncounted(view: &View) -> Option<Value> {
    let [succeeded, failed] = [true, false].map(|it| view.uncounted(it));
    if succeeded == view.noted("succeeded") && failed == view.noted("failed") {
        return None;
    }
    Some(json!({"uncountedTerminatedPods": {"succeeded": succeeded, "failed": failed}}))
}

/// Returns the changed status fields, with the uncounted finished pods added to the counters.
///
/// Upstream: `trackJobStatusAndRemoveFinalizers`, `enactJobFinished`
pub(super) fn difference(view: &View, target: Option<&Target>, is_still: bool) -> Option<Value> {
    let count = |of: fn(&&JobPod) -> bool| view.pods.iter().filter(of).count();
    let terminating = count(|pod| pod.is_deleting && !pod.is_over());
    let mut status = json!({
        "active": count(|pod| pod.is_active()),
        "ready": count(|pod| pod.is_active() && pod.is_ready),
        "terminating": terminating,
        "succeeded": view.succeeded(),
        "failed": view.failed(),
    });
    if view.is_indexed {
        let indexes = indexes::print(&view.succeeded_indexes());
        status["completedIndexes"] = Some(indexes).filter(|it| !it.is_empty()).into();
    }
    let now = json!(time::format_seconds(view.now));
    let started = text_at(&view.job, "/status/startTime");
    match (view.is_suspended, started) {
        (false, "") => status["startTime"] = now.clone(),
        (true, known) if !known.is_empty() => status["startTime"] = Value::Null,
        _ => {}
    }
    let mut conditions: Vec<Value> = suspension(view).into_iter().collect();
    if let Some(target) = target {
        let kinds = if target.has_succeeded {
            ["SuccessCriteriaMet", "Complete"]
        } else {
            ["FailureTarget", "Failed"]
        };
        let is_over = is_still && terminating == 0;
        let reached = if is_over { &kinds[..] } else { &kinds[..1] };
        let new = reached.iter().filter(|kind| !holds(view, kind));
        conditions.extend(
            new.map(|kind| condition(view, kind, "True", (&target.reason, &target.message))),
        );
        if is_over && target.has_succeeded {
            status["completionTime"] = now;
        }
    }
    let mut changed = crate::replica_set_controller::status::difference(&view.job, status.clone());
    if !conditions.is_empty() {
        changed["conditions"] = all_conditions(view, conditions);
    }
    let is_noted = [true, false]
        .iter()
        .all(|it| view.uncounted(*it).is_empty());
    let is_known = view
        .job
        .pointer("/status/uncountedTerminatedPods")
        .is_some();
    if !is_noted || !is_known {
        changed["uncountedTerminatedPods"] = json!({"succeeded": null, "failed": null});
    }
    if changed == json!({}) {
        return None;
    }
    changed["ready"] = status["ready"].clone();
    changed["terminating"] = status["terminating"].clone();
    Some(changed)
}

/// Returns the condition of a job that was suspended or resumed.
fn suspension(view: &View) -> Option<Value> {
    match (view.is_suspended, holds(view, "Suspended")) {
        (true, false) => Some(condition(
            view,
            "Suspended",
            "True",
            ("JobSuspended", "Job suspended"),
        )),
        (false, true) => Some(condition(
            view,
            "Suspended",
            "False",
            ("JobResumed", "Job resumed"),
        )),
        _ => None,
    }
}

fn condition(view: &View, kind: &str, status: &str, (reason, message): (&str, &str)) -> Value {
    let now = time::format_seconds(view.now);
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    })
}

/// Returns the job's conditions with these merged in; a patch keeps their order.
fn all_conditions(view: &View, new: Vec<Value>) -> Value {
    let known = list_at(&view.job, "/status/conditions");
    let mut all: Vec<Value> = known.cloned().collect();
    for condition in new {
        let same = all.iter_mut().find(|it| it["type"] == condition["type"]);
        match same {
            Some(same) => *same = condition,
            None => all.push(condition),
        }
    }
    all.into()
}
