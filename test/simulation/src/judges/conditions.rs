//! Conditions: every write names the object, or the version of it, that the sync saw.

use kube_test_control_plane::route::Verb;

use super::{Case, Verdict, Write};

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    judge_condition(write, verdict);
    if write.deletes("pods") || write.evicts() {
        judge_deleted_pod(case, write, verdict);
    }
}

/// P-4: a write that arrives late meets no other object: changes name a version and a uid, patches
/// and deletions a uid.
fn judge_condition(write: &Write<'_>, verdict: &mut Verdict) {
    let named = |pointer: &str| write.text(pointer).is_some_and(|text| !text.is_empty());
    let is_conditional = match write.request.verb {
        Some(Verb::Create) if write.evicts() => named("/deleteOptions/preconditions/uid"),
        Some(Verb::Create) => named("/metadata/name"),
        Some(Verb::Update) => named("/metadata/resourceVersion") && named("/metadata/uid"),
        Some(Verb::Patch) => named("/metadata/uid"),
        Some(Verb::Delete) => {
            let version = write.request.resource != "controllerrevisions"
                || named("/preconditions/resourceVersion");
            named("/preconditions/uid") && version
        }
        _ => false,
    };
    if !is_conditional {
        let message = format!("{}: unconditional", write.named());
        verdict.broken("P-4", write.request.sent, message);
    }
}

/// I-4: a deletion carries the uid of a pod that the sync saw; I-2: it doesn't override the grace
/// period, and the pod is not being deleted already.
fn judge_deleted_pod(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let at = write.request.sent;
    let uid = write.deleted_uid();
    let seen = write.seen.pods;
    let known: Vec<_> = write.versions(&case.history.pods, seen).collect();
    if !known.iter().any(|pod| uid.as_ref() == Some(&pod.uid)) {
        let known: Vec<&str> = known.iter().map(|pod| pod.uid.as_str()).collect();
        let message = format!("{}: uid {uid:?}, the sync saw {known:?}", write.named());
        verdict.broken("I-4", at, message);
    }
    if write.request.json().get("gracePeriodSeconds").is_some() {
        let message = format!("{}: sets gracePeriodSeconds", write.named());
        verdict.broken("I-2", at, message);
    }
    let mut same = known.iter().filter(|pod| uid.as_ref() == Some(&pod.uid));
    if !known.is_empty() && same.all(|pod| pod.terminating) {
        let message = format!("{}: it is being deleted already", write.named());
        verdict.broken("I-2", at, message);
    }
}
