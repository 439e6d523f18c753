//! Identity: names, labels and owners of pods; deletions hit what the sync saw.

use serde_json::Value;

use super::Verdict;
use super::case::{Case, Write};

pub(super) fn judge(_: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.creates("pods") {
        judge_created(write, verdict);
    }
    if write.request.resource == "pods" && write.ordinal().is_none() {
        let message = format!("{}: the name is not canonical", write.named());
        verdict.broken("I-3", write.request.sent, message);
    }
    if write.deletes("pods") {
        judge_deleted(write, verdict);
    }
    judge_target(write, verdict);
}

/// I-1: a new pod has its slot's identity.
fn judge_created(write: &Write<'_>, verdict: &mut Verdict) {
    let (body, set) = (write.request.json(), write.view.set);
    let name = &write.request.name;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let ordinal = write.ordinal().map(|ordinal| ordinal.to_string());
    let label = "/metadata/labels/statefulset.kubernetes.io~1pod-name";
    let index = "/metadata/labels/apps.kubernetes.io~1pod-index";
    let owners = body.pointer("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array);
    let controllers: Vec<&str> = owners
        .into_iter()
        .flatten()
        .filter(|owner| owner.get("controller") == Some(&Value::Bool(true)))
        .filter_map(|owner| owner.get("uid")?.as_str())
        .collect();
    let is_right = text("/spec/hostname") == Some(name)
        && text("/spec/subdomain") == Some(&set.name)
        && text(label) == Some(name)
        && text(index) == ordinal.as_deref()
        && controllers == [set.uid.as_str()];
    if !is_right {
        let message = format!("{}: wrong identity", write.named());
        verdict.broken("I-1", write.request.sent, message);
    }
}

/// I-4: a deletion carries the uid that the sync saw; I-2: and no grace period.
fn judge_deleted(write: &Write<'_>, verdict: &mut Verdict) {
    let body = write.request.json();
    let uid = body.pointer("/preconditions/uid").and_then(Value::as_str);
    let known = write.deleted_pod().map(|(_, pod)| pod.uid.as_str());
    if uid.is_none() || uid != known {
        let message = format!("{}: uid {uid:?}, the sync saw {known:?}", write.named());
        verdict.broken("I-4", write.request.sent, message);
    }
    if body.get("gracePeriodSeconds").is_some() {
        let message = format!("{}: with a grace period", write.named());
        verdict.broken("I-2", write.request.sent, message);
    }
}

/// I-5: nothing is written but the set's pods, claims, revisions and its status.
fn judge_target(write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    let is_allowed = match request.resource.as_str() {
        "pods" | "controllerrevisions" => request.subresource.is_empty(),
        "persistentvolumeclaims" => {
            let claim = write.view.set.ordinal_of_claim(&request.name);
            request.subresource.is_empty() && claim.is_some()
        }
        "statefulsets" => request.subresource == "status",
        _ => false,
    };
    if !is_allowed {
        let message = format!("{}: not the set's", write.named());
        verdict.broken("I-5", request.sent, message);
    }
}
