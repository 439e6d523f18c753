//! Identity: names, labels and owners of pods; every write concerns an object of its set.

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;
use serde_json::Value;

use super::{Case, Verdict, Write};
use crate::agent::USER;

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.creates("pods") {
        judge_created(write, verdict);
    }
    if write.request.resource == "pods" && write.ordinal().is_none() {
        let message = format!("{}: the name is not canonical", write.named());
        verdict.broken("I-3", write.request.sent, message);
    }
    judge_target(case, write, verdict);
}

/// I-5: every write belongs to a sync of a set that its process knew.
pub(super) fn judge_strays(case: &Case<'_>, verdict: &mut Verdict) {
    for request in case.strays() {
        let message = format!("{}: belongs to no sync of a known set", request.named());
        verdict.broken("I-5", request.sent, message);
    }
}

/// I-2: two pods of a name never run at the same time, unless a user deleted one of them by force.
pub(super) fn judge_twins(case: &Case<'_>, verdict: &mut Verdict) {
    let mut forced: Vec<String> = Vec::new();
    for commit in &case.record.commits {
        let key = &commit.entry.object.key;
        let gone = commit.entry.change == Change::Deleted;
        if *key.storage == *"pods" && gone && *commit.agent == *USER {
            forced.push(format!("/{} ", key.name));
        }
    }
    for message in &case.record.plane_violations {
        if !forced.iter().any(|name| message.contains(name)) {
            verdict.broken("I-2", case.record.length, message.clone());
        }
    }
}

/// I-1: a new pod has its slot's identity.
fn judge_created(write: &Write<'_>, verdict: &mut Verdict) {
    let (body, set) = (write.request.json(), write.view.set);
    let name = &write.request.name;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let ordinal = write.ordinal().map(|ordinal| ordinal.to_string());
    let label = "/metadata/labels/statefulset.kubernetes.io~1pod-name";
    let index = "/metadata/labels/apps.kubernetes.io~1pod-index";
    let claims: Vec<String> = write
        .ordinal()
        .map(|ordinal| set.claims_of(ordinal).collect())
        .unwrap_or_default();
    let pod = crate::views::Pod::read(&body);
    let is_right = text("/spec/hostname") == Some(name)
        && text("/spec/subdomain") == Some(&set.service)
        && text(label) == Some(name)
        && text(index) == ordinal.as_deref()
        && claims.iter().all(|claim| pod.claims.contains(claim))
        && controllers(&body) == [set.uid.as_str()];
    if !is_right {
        let message = format!("{}: wrong identity", write.named());
        verdict.broken("I-1", write.request.sent, message);
    }
}

/// Returns the uids of the controllers in a body.
fn controllers(body: &Value) -> Vec<&str> {
    let owners = body.pointer("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    owners
        .filter(|owner| owner.get("controller") == Some(&Value::Bool(true)))
        .filter_map(|owner| owner.get("uid")?.as_str())
        .collect()
}

/// I-5: nothing is written but the set's pods, claims, revisions and its status. The stored owner
/// reference decides; adoption and release patches have their own rules.
fn judge_target(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    let is_main = request.subresource.is_empty();
    let is_allowed = match request.resource.as_str() {
        "pods" if request.evicts() || request.resizes() => owns_pod(case, write),
        "pods" => is_main && (adopts(write) || owns_pod(case, write)),
        "controllerrevisions" => is_main && (adopts(write) || owns_revision(case, write)),
        "persistentvolumeclaims" => is_main && names_claim(case, write),
        "statefulsets" => {
            let uid = write.text("/metadata/uid");
            request.subresource == "status" && uid.as_ref() == Some(&write.view.set.uid)
        }
        _ => false,
    };
    if !is_allowed {
        let message = format!("{}: not an object of this set", write.named());
        verdict.broken("I-5", request.sent, message);
    }
}

/// Reports whether the sync makes the object the set's: it creates or adopts it.
fn adopts(write: &Write<'_>) -> bool {
    let request = write.request;
    let verb = request.verb;
    let creates =
        verb == Some(Verb::Create) && controllers(&request.json()) == [write.view.set.uid.as_str()];
    creates || verb == Some(Verb::Patch) || write.follows(Verb::Patch)
}

fn owns_pod(case: &Case<'_>, write: &Write<'_>) -> bool {
    let mut pods = write.versions(&case.history.pods, write.seen.pods);
    pods.any(|pod| pod.is_of(&write.view.set.uid))
}

fn owns_revision(case: &Case<'_>, write: &Write<'_>) -> bool {
    let seen = write.seen.revisions;
    let mut revisions = write.versions(&case.history.revisions, seen);
    revisions.any(|revision| revision.is_of(&write.view.set.uid))
}

/// Reports whether a claim's name follows from a template for a desired pod or a member.
fn names_claim(case: &Case<'_>, write: &Write<'_>) -> bool {
    let set = write.view.set;
    let Some(ordinal) = set.ordinal_of_claim(&write.request.name) else {
        return false;
    };
    let key = (
        write.request.namespace.clone(),
        format!("{}-{ordinal}", set.name),
    );
    let mut pods = case
        .history
        .pods
        .during(&key, write.seen.pods, write.newest);
    set.range().contains(&ordinal) || pods.any(|pod| pod.is_of(&set.uid))
}
