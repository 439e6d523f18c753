//! Revisions: which one a pod gets, and which ones are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_test_control_plane::route::Verb;
use serde_json::Value;

use super::Verdict;
use super::case::{newest, without_new_member};
use super::progress::{comes_to_status, update_after, update_of};
use super::{Case, Write, opt_ins};
use crate::record::Request;
use crate::views::{Pod, Revision};

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.creates("pods") {
        judge_created(case, write, verdict);
    }
    if write.creates("controllerrevisions") {
        judge_new(case, write, verdict);
    }
    let verb = write.request.verb;
    let numbers = [Some(Verb::Create), Some(Verb::Update)].contains(&verb);
    if numbers && write.request.resource == "controllerrevisions" {
        judge_number(case, write, verdict);
    }
    if write.deletes("controllerrevisions") {
        judge_truncated(case, write, verdict);
    }
    if write.request.subresource == "status" {
        judge_completion(case, write, verdict);
    }
}

/// pods below the partition get the current revision, others the update revision.
fn judge_created(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let Some(ordinal) = write.ordinal() else {
        return;
    };
    let Some(update) = update_of(case, write) else {
        return;
    };
    let set = write.view.set;
    let current = &set.status.current_revision;
    let mut known = write.view.revisions.iter();
    let members = write.view.members.values().copied();
    let process = write.sync.process;
    let partition = opt_ins::partition(case, process, set, members, Some(update.name.as_str()));
    let keeps = !set.is_on_delete() && ordinal.saturating_sub(set.start) < partition;
    let wanted = if keeps && known.any(|it| it.name == *current) {
        current
    } else {
        &update.name
    };
    let body = write.request.json();
    let label = "/metadata/labels/controller-revision-hash";
    let got = body.pointer(label).and_then(Value::as_str);
    if got != Some(wanted) {
        let message = format!("{}: revision {got:?} instead of {wanted}", write.named());
        verdict.broken("R-1", write.request.sent, message);
    }
}

/// no two revisions of a set have the same template. A version that writes it in another way
/// compares it with the latest revision alone, as upstream. Nor is it promised if syncs don't wait
/// for their process's writes. A revision whose creation never got a response, and which the cache
/// does not show, is found by its name alone, so only if its bytes are the same.
fn judge_new(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let consistent = case.plan.settings.consistency;
    let processed = write.request.processed;
    let Some(processed) = processed.filter(|it| it.code < 300 && consistent) else {
        return;
    };
    let key = write.key();
    let Some(new) = case.history.revisions.at(&key, processed.after) else {
        return;
    };
    let uid = &write.view.set.uid;
    let stored = case.history.revisions.all_at(&key.0, processed.after);
    let mut owned = stored.filter(|it| it.controller.as_ref().is_some_and(|it| it.uid == *uid));
    let recorded = |it: &Revision| without_new_member(it.recorded.clone());
    let latest = newest(write.view.revisions.iter().copied());
    let equal = owned.find(|it| {
        let is_latest = latest.is_some_and(|latest| latest.name == it.name);
        let is_equal = if unanswered(case, write, it) {
            it.recorded == new.recorded
        } else {
            recorded(it) == recorded(new) || is_latest && it.template == new.template
        };
        it.name != new.name && is_equal
    });
    if let Some(equal) = equal {
        let message = format!("{}: {} has the same template", write.named(), equal.name);
        verdict.broken("R-3", write.request.sent, message);
    }
}

/// Reports whether a sync's cache lacks a revision, and no instance got the response of its
/// creation.
fn unanswered(case: &Case<'_>, write: &Write<'_>, revision: &Revision) -> bool {
    let mut seen = write.view.revisions.iter();
    let known = seen.any(|it| it.name == revision.name);
    let mut creations = case.record.requests.iter().filter(|it| {
        let creates = it.verb == Some(Verb::Create) && it.resource == "controllerrevisions";
        creates && it.name == revision.name && it.namespace == write.request.namespace
    });
    let answered = creations.any(|it| {
        it.status
            .is_some_and(|status| status < 300 || status == 409)
    });
    !known && !answered
}

/// a new revision, and one that is used again, gets the next number; the latter had not the
/// highest one.
fn judge_number(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let number = write.request.json()["revision"]
        .as_i64()
        .unwrap_or_default();
    let known = known_numbers(case, write);
    let highest = known.values().copied().max().unwrap_or_default();
    let latest = known.iter().filter(|(_, number)| **number == highest);
    let latest: Vec<&str> = latest.map(|(name, _)| *name).collect();
    if number != highest + 1 || latest == [write.request.name.as_str()] {
        let message = format!("{}: number {number} after {highest}", write.named());
        verdict.broken("R-2", write.request.sent, message);
    }
}

/// Returns the numbers of the revisions that a sync knows, by name. It learns the stored ones of those
/// that it adopts.
fn known_numbers<'a>(case: &Case<'a>, write: &Write<'a>) -> BTreeMap<&'a str, i64> {
    let view = write.view.revisions.iter();
    let mut known: BTreeMap<&str, i64> = view.map(|it| (it.name.as_str(), it.number)).collect();
    for request in &write.earlier {
        let adopts = request.verb == Some(Verb::Patch) && request.resource == "controllerrevisions";
        let key = (request.namespace.clone(), request.name.clone());
        let stored = request
            .processed
            .and_then(|it| case.history.revisions.at(&key, it.after));
        if let (true, Some(stored)) = (adopts, stored) {
            known.insert(&stored.name, stored.number);
        }
    }
    known
}

/// a revision in use is never deleted. R-5: nor one within the limit. A sync that failed before
/// it knew the current revision protects those of the pods alone, as upstream's.
fn judge_truncated(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (set, name) = (write.view.set, &write.request.name);
    let mut live: BTreeSet<&str> = BTreeSet::new();
    live.extend(write.view.members.values().map(|it| it.revision.as_str()));
    let dead = |live: &BTreeSet<&str>| {
        let mut known: BTreeSet<&str> = write.view.revisions.iter().map(|it| &*it.name).collect();
        known.retain(|it| !live.contains(it));
        i64::try_from(known.len()).unwrap_or(i64::MAX)
    };
    if knows_revisions(&write.earlier) {
        live.insert(&set.status.current_revision);
        live.extend(update_of(case, write).map(|it| it.name.as_str()));
    }
    let deleted = write
        .earlier
        .iter()
        .filter(|it| it.verb == Some(Verb::Delete) && it.resource == "controllerrevisions");
    let kept = dead(&live) - i64::try_from(deleted.count()).unwrap_or(i64::MAX);
    // Without the wait for the instance's own writes, a sync may not know its own pods.
    if case.plan.settings.consistency {
        live.extend(created_since(case, write).map(|it| it.revision.as_str()));
    }
    if live.contains(name.as_str()) {
        let message = format!("{}: it is in use", write.named());
        verdict.broken("R-4", write.request.sent, message);
    }
    if set.history_limit < 0 || kept <= set.history_limit {
        let message = format!("{}: {kept} of {} kept", write.named(), set.history_limit);
        verdict.broken("R-5", write.request.sent, message);
    }
}

/// Reports whether a sync knows its current and update revision after these requests.
fn knows_revisions(requests: &[&Request]) -> bool {
    let mut revisions = requests
        .iter()
        .filter(|it| it.resource == "controllerrevisions" && it.verb != Some(Verb::Delete));
    revisions.all(|it| it.status.is_some_and(|status| status < 300))
}

/// a sync that finds too many revisions deletes some, even if its other writes fail.
pub(super) fn judge_syncs(case: &Case<'_>, verdict: &mut Verdict) {
    for (number, sync) in case.ended_syncs() {
        let Some(view) = case.view(number) else {
            continue;
        };
        let set = view.set;
        let requests: Vec<&Request> = case.requests_of(number).collect();
        let comes_to_it = comes_to_status(case, sync, &requests);
        if set.history_limit < 0 || !comes_to_it {
            continue;
        }
        let update = update_after(case, &view, &requests, sync.process);
        let mut live: BTreeSet<&str> = BTreeSet::new();
        live.insert(&set.status.current_revision);
        live.extend(update.map(|it| it.name.as_str()));
        live.extend(view.members.values().map(|it| it.revision.as_str()));
        let dead = view.revisions.iter().filter(|it| !live.contains(&*it.name));
        let dead = i64::try_from(dead.count()).unwrap_or(i64::MAX);
        let deletes = requests
            .iter()
            .any(|it| it.verb == Some(Verb::Delete) && it.resource == "controllerrevisions");
        if dead > set.history_limit && !deletes {
            let limit = set.history_limit;
            let message = format!("set {}: {dead} old revisions stay, limit {limit}", set.name);
            verdict.broken("R-5", sync.at, message);
        }
    }
}

/// Returns the pods of the set that instances created, as they know, after the sync read its pods. Behind a
/// fence those of the other controller are left out: its writes are unknown to this one.
fn created_since<'a>(
    case: &'a Case<'_>,
    write: &'a Write<'_>,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let namespace = &write.request.namespace;
    let (set, seen) = (write.view.set, write.seen.pods);
    let before = write.request.processed.map_or(seen, |it| it.before);
    let stored = case.history.pods.all_at(namespace, before);
    stored.filter(move |pod| {
        let owner = pod.controller.as_ref();
        let known = case
            .history
            .pods
            .at(&(namespace.clone(), pod.name.clone()), seen);
        owner.is_some_and(|it| it.uid == set.uid)
            && super::case::belongs(set, pod)
            && known.is_none_or(|it| it.uid != pod.uid)
            && !is_created_by_the_other(case, write, pod)
            && !is_created_unnoticed(case, pod)
    })
}

/// Reports whether the response to the creation of a pod was lost.
fn is_created_unnoticed(case: &Case<'_>, pod: &Pod) -> bool {
    let mut requests = case.record.requests.iter();
    requests.any(|it| {
        let is_creation = it.verb == Some(Verb::Create) && it.resource == "pods";
        let key = (it.namespace.clone(), it.name.clone());
        let stored = it.processed.filter(|it| it.code < 300);
        let stored = stored.and_then(|it| case.history.pods.at(&key, it.before + 1));
        let is_it = stored.is_some_and(|stored| stored.uid == pod.uid);
        is_creation && it.name == pod.name && is_it && it.status.is_none()
    })
}

/// Reports whether the controller on the other side of the fence created a pod after the sync read its
/// pods.
fn is_created_by_the_other(case: &Case<'_>, write: &Write<'_>, pod: &Pod) -> bool {
    let side = case.is_built_in(write.sync.process);
    let mut requests = case.record.requests.iter();
    requests.any(|it| {
        let is_creation =
            it.verb == Some(Verb::Create) && it.resource == "pods" && it.name == pod.name;
        let processed = it.processed.filter(|it| it.code < 300);
        is_creation
            && case.is_built_in(it.process) != side
            && processed.is_some_and(|it| it.before >= write.seen.pods)
    })
}

/// an update is complete when all pods are updated and ready, as the sync saw them.
fn judge_completion(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let set = write.view.set;
    let body = write.request.json();
    let text = |member: &str| {
        let found = body.pointer(&format!("/status/{member}"));
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (old, new) = (&set.status.current_revision, text("currentRevision"));
    let known = write.view.revisions.iter().any(|it| it.name == *old);
    if old.is_empty() || new == *old || !known {
        return;
    }
    let update = update_of(case, write).map(|it| it.name.as_str());
    let members = &write.view.members;
    // A condemned pod counts as well, as in upstream.
    let is_complete = u32::try_from(members.len()) == Ok(set.replicas)
        && members
            .values()
            .all(|pod| pod.is_ready() && !pod.terminating && Some(pod.revision.as_str()) == update);
    if Some(new.as_str()) != update || !is_complete {
        let message = format!(
            "{}: current revision {old} -> {new} too early",
            write.named()
        );
        verdict.broken("R-6", write.request.sent, message);
    }
}
