//! Growth of claims: none shrinks, none of others is touched, and few grow at once.

use kube_test_control_plane::route::Verb;
use serde_json::Value;

use super::choices::{bytes, choices};
use super::limit::is_paused;
use super::{Case, Verdict, Write};
use crate::agent::Process;
use crate::plan::opt_ins::{GROWING, WITH_POD};
use crate::record::{Request, SetKey};
use crate::views::{Claim, Set};

/// The condition about sizes.
const RESIZED: &str = "ClaimsResized";

/// Pointer to the requested size of a claim.
const REQUEST: &str = "/spec/resources/requests/storage";

/// Returns the spec of a new claim: that of its template, at the desired size if that is larger.
pub(in super::super) fn new_spec(
    case: &Case<'_>,
    write: &Write<'_>,
    template: &str,
    spec: &Value,
) -> Value {
    let mut spec = spec.clone();
    let choices = choices(case, write.sync.process, write.view.set);
    let wanted = choices.and_then(|it| it.sizes.get(template).copied());
    let stored = spec.pointer("/resources/requests/storage");
    let stored = stored.and_then(Value::as_str).map_or(0, bytes);
    if let Some(wanted) = wanted.filter(|wanted| *wanted > stored) {
        let text = Value::from(gibibytes(wanted));
        spec["resources"]["requests"]["storage"] = text;
    }
    spec
}

/// Reports whether a change of a claim's resources is nothing but growth for which its set asks.
pub(in super::super) fn is_growth(case: &Case<'_>, write: &Write<'_>, base: &Value) -> bool {
    let body = write.request.json();
    let mut grown = base.clone();
    let Some(request) = body.pointer(REQUEST) else {
        return false;
    };
    grown["spec"]["resources"]["requests"]["storage"] = request.clone();
    let set = write.view.set;
    let wanted = wanted(case, write.sync.process, set, &write.request.name);
    grown["spec"] == body["spec"]
        && wanted == Some(bytes(request.as_str().unwrap_or_default()))
        && set.ordinal_of_claim(&write.request.name).is_some()
}

/// Judges a write of a claim or a status.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if request.verb != Some(Verb::Update) {
        return;
    }
    match (&*request.resource, &*request.subresource) {
        ("persistentvolumeclaims", "") => judge_request(case, write, verdict),
        ("statefulsets", "status") => judge_condition(case, write, verdict),
        _ => {}
    }
}

/// the condition says that all claims have the desired size only if the sync can have known of none
/// that hasn't. After a failure, and while the set is being deleted, the condition stays as it was.
fn judge_condition(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let written = Set::read(&write.request.json());
    let mut conditions = written.conditions.iter();
    let resized = conditions.find(|it| it.kind == RESIZED);
    let mut earlier = write.earlier.iter();
    let fails = earlier.any(|it| it.resource == "persistentvolumeclaims" && it.has_failed());
    let set = write.view.set;
    if fails || set.terminating || resized.is_none_or(|it| it.status != "True") {
        return;
    }
    let claims = set.range().flat_map(|ordinal| set.claims_of(ordinal));
    let mut unfinished = claims.filter(|claim| {
        let wanted = wanted(case, write.sync.process, set, claim);
        let key: SetKey = (write.request.namespace.clone(), claim.clone());
        let (claims, seen) = (&case.history.claims, write.seen.claims);
        // The cache may show each change during the sync.
        let changes = claims.changes(&key, seen, write.newest);
        let mut known = changes
            .map(|(_, claim)| claim)
            .chain([claims.at(&key, seen)]);
        let has_size =
            |it: &Claim| wanted.is_none_or(|size| it.request == size && !it.is_growing());
        // One that doesn't exist gets the size later.
        !known.any(|claim| claim.is_none_or(|it| has_size(it)))
    });
    if let Some(claim) = unfinished.next() {
        let key: SetKey = (write.request.namespace.clone(), claim.clone());
        let seen = case.history.claims.at(&key, write.seen.claims);
        let sizes = seen.map(|it| (it.request, it.capacity));
        let message = format!("{}: claim {claim} has {sizes:?} bytes", write.named());
        verdict.broken("X-11", write.request.sent, message);
    }
}

/// a claim's request never falls, and rises only for a bound claim of a desired pod of the set, which
/// isn't being deleted. X-10: volumes of no more pods grow at once than may be unavailable. Those of a pod
/// that is down don't wait for restarts of others.
fn judge_request(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    let version = write.text("/metadata/resourceVersion");
    let version = version.and_then(|version| version.parse().ok());
    let base = version.and_then(|it| case.claim(&request.namespace, &request.name, it));
    let Some(base) = base else { return };
    let set = write.view.set;
    let written = Claim::read(&request.json());
    if written.request == base.request {
        return;
    }
    let ordinal = set.ordinal_of_claim(&request.name);
    let why = if written.request < base.request {
        Some("it shrinks")
    } else if !ordinal.is_some_and(|it| set.range().contains(&it)) || base.app != set.app {
        Some("it is not a claim of the set")
    } else if base.terminating || !base.bound {
        Some("it is being deleted, or not bound")
    } else {
        None
    };
    if let Some(why) = why {
        let message = format!("{}: {why}", write.named());
        verdict.broken("X-9", request.sent, message);
    }
    let others = set.range().filter(|it| Some(*it) != ordinal);
    let pod = ordinal.and_then(|it| write.view.members.get(&it));
    let is_down = pod.is_none_or(|pod| !pod.is_healthy(set.min_ready_seconds, write.early));
    let mut others: Vec<u32> = others.collect();
    others.retain(|it| {
        let mut claims = set.claims_of(*it);
        claims.any(|claim| grows(case, write, &claim, is_down))
    });
    let budget = set.max_unavailable(case.plan.settings.max_unavailable);
    let is_late = ordinal.is_some_and(|it| {
        let mut claims = set.claims_of(it);
        claims.any(|claim| grows(case, write, &claim, false))
    });
    if others.len() >= budget && !is_late {
        let message = format!("{}: the claims of {others:?} grow", write.named());
        verdict.broken("X-10", request.sent, message);
    }
}

/// Reports whether the sync saw a claim of a template with a desired size whose volume grows, in all
/// versions that it can have known; with `without_restarts`, one that doesn't wait for its pod.
fn grows(case: &Case<'_>, write: &Write<'_>, claim: &str, without_restarts: bool) -> bool {
    let set = write.view.set;
    if wanted(case, write.sync.process, set, claim).is_none() {
        return false;
    }
    let key: SetKey = (write.request.namespace.clone(), claim.to_owned());
    let seen = write.seen.claims;
    let mut known = case
        .history
        .claims
        .during(&key, seen, write.newest)
        .peekable();
    // Without restarts, a volume may wait for its pod as long as it likes.
    let restarts = choices(case, write.sync.process, set).is_some_and(|it| it.restarts());
    let restarts = restarts && !set.is_on_delete() && !without_restarts;
    let grows = |it: &Claim| it.is_growing() && (restarts || it.awaits_node.is_none());
    known.peek().is_some() && known.all(|it| grows(it) && !it.terminating)
}

/// Returns the desired size of a claim.
pub(super) fn wanted(case: &Case<'_>, process: Process, set: &Set, claim: &str) -> Option<i64> {
    let choices = choices(case, process, set)?;
    let mut sizes = choices.sizes.iter();
    let found = sizes.find(|(template, _)| {
        let rest = claim.strip_prefix(template.as_str());
        rest.is_some_and(|rest| rest.starts_with(&format!("-{}-", set.name)))
    });
    found.map(|(_, size)| *size)
}

/// at the end, the claims of desired pods have the desired size where their class allows it; the
/// condition says whether all have it.
pub(in super::super) fn pending(
    case: &Case<'_>,
    process: Process,
    set: &Set,
    (namespace, seen): (&str, u64),
) -> Vec<(&'static str, String)> {
    let mut tasks = Vec::new();
    let Some(choices) = choices(case, process, set) else {
        return tasks;
    };
    let sizes = &choices.sizes;
    let restarts = choices.restarts() && !set.is_on_delete();
    // A paused set restarts no pod, and the volumes that wait for that use up its budget.
    let is_paused = restarts && is_paused(&choices, set);
    let mut is_held = false;
    let (mut all, mut all_sizes) = (true, true);
    for ordinal in set.range() {
        for (template, size) in sizes {
            let name = format!("{template}-{}-{ordinal}", set.name);
            let Some(claim) = case.claim(namespace, &name, seen) else {
                continue;
            };
            all_sizes &= claim.request == *size && !claim.is_growing();
            all &= all_sizes && !claim.terminating;
            let pod = format!("{}-{ordinal}", set.name);
            let is_foreign = claim.owners.iter().any(|it| {
                let is_ours = it.uid == set.uid || it.kind == "Pod" && it.name == pod;
                it.controller && !is_ours
            });
            let is_ours = claim.app == set.app && !is_foreign;
            let may_grow = [GROWING, WITH_POD].contains(&claim.class.as_str())
                && is_ours
                && !claim.terminating;
            let waits = claim.is_growing() && claim.awaits_node.is_some();
            is_held |= waits && is_paused;
            let grows = claim.is_growing() && (!waits || restarts && !is_paused);
            if may_grow && claim.bound && (claim.request < *size || grows) {
                tasks.push(("X-11", format!("claim {name} is smaller than {size} bytes")));
            }
        }
    }
    if is_held {
        tasks.clear();
    }
    let condition = set.conditions.iter().find(|it| it.kind == RESIZED);
    let status = condition.map(|it| it.status.as_str());
    let expected = (!sizes.is_empty()).then_some(if all { "True" } else { "False" });
    // The deletion of a claim that has the size wakes no set.
    let is_unnoticed = all_sizes && !sizes.is_empty() && status == Some("True");
    if status != expected && !is_unnoticed {
        tasks.push((
            "X-11",
            format!("ClaimsResized is {status:?}, not {expected:?}"),
        ));
    }
    tasks
}

/// Reports whether the write of a status changes what the set's condition says about its claims.
pub(in super::super) fn tells_of_claims(write: &Request, known: &Set) -> bool {
    let said = |set: &Set| {
        let mut conditions = set.conditions.iter();
        let resized = conditions.find(|it| it.kind == RESIZED);
        resized.map(|it| (it.reason.clone(), it.message.clone()))
    };
    write.subresource == "status" && said(&Set::read(&write.json())) != said(known)
}

/// Writes a number of bytes as plans do.
fn gibibytes(bytes: i64) -> String {
    format!("{}Gi", bytes >> 30)
}
