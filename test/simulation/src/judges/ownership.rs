//! Adoption, release, and sets that are being deleted.

use kube_test_control_plane::route::Verb;

use super::Verdict;
use super::case::{Case, Write};
use crate::views::Pod;

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if request.verb == Some(Verb::Patch) {
        judge_patch(case, write, verdict);
    }
    let is_of_pods = ["pods", "persistentvolumeclaims"].contains(&request.resource.as_str());
    if write.view.set.terminating && is_of_pods {
        let message = format!("{}: the set is being deleted", write.named());
        verdict.broken("G-3", request.sent, message);
    }
}

/// G-1: an orphan is adopted only by a set that a live look showed alive, and only with its uid.
/// G-2: a pod is released only if the selector doesn't match any more.
fn judge_patch(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (request, set) = (write.request, write.view.set);
    let body = request.json();
    let owners = body.pointer("/metadata/ownerReferences");
    let Some(owners) = owners.and_then(serde_json::Value::as_array) else {
        return;
    };
    let releases = owners.iter().any(|it| it.get("$patch").is_some());
    if releases {
        let seen = case.history.pods.at(&write.key(), write.sync.seen.pods);
        let matches = |pod: &Pod| pod.app == set.app && pod.ordinal(&set.name).is_some();
        if request.resource == "pods" && seen.is_some_and(|pod| matches(pod)) {
            let message = format!("{}: the selector matches", write.named());
            verdict.broken("G-2", request.sent, message);
        }
        return;
    }
    let looked = write.earlier.iter().any(|it| {
        let is_look = it.verb == Some(Verb::Get) && it.resource == "statefulsets";
        let live = it
            .processed
            .and_then(|processed| case.history.sets.at(&write.sync.set, processed.before));
        let alive = live.is_some_and(|live| live.uid == set.uid && !live.terminating);
        is_look && it.status == Some(200) && alive
    });
    let uid = body.pointer("/metadata/uid").is_some();
    if !looked || !uid {
        let message = format!("{}: looked {looked}, uid {uid}", write.named());
        verdict.broken("G-1", request.sent, message);
    }
}
