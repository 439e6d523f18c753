//! State after the last fault.

use std::collections::BTreeSet;
use std::time::Duration;

use super::settled::Scene;
use super::{Case, Verdict, opt_ins};
use crate::record::{Request, Seen};
use crate::run::{QUIET, QUIET_WITHIN};
use crate::views::{Claim, Owner};
use kube_test_control_plane::route::Verb;

pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    let end = case.record.length;
    if case.record.quiet.is_none() {
        let message = format!("the controllers still write {QUIET_WITHIN:?} after the last fault");
        verdict.broken("L-1", end, message);
        return;
    }
    let newest = case.history.newest;
    let seen = Seen {
        sets: newest,
        pods: newest,
        claims: newest,
        revisions: newest,
    };
    for key in case.history.sets.keys() {
        let mut processes = case.record.syncs.iter().rev().map(|sync| sync.process);
        let process = processes.find(|process| case.acts_at_end(*process));
        let now = case.clock_at(end);
        let Some(scene) = process.and_then(|process| Scene::of(case, key, seen, now, process))
        else {
            continue;
        };
        let name = &scene.set.name;
        if scene.set.terminating {
            verdict.broken("L-8", end, format!("set {name} is never gone"));
            continue;
        }
        for (rule, why) in scene.pending_tasks() {
            verdict.broken(rule, end, format!("set {name}: {why}"));
        }
    }
    judge_owners(case, verdict);
}

/// G-5: no pod, revision or claim belongs to a set or a pod that is gone, unless the garbage collector
/// is slower than the run.
fn judge_owners(case: &Case<'_>, verdict: &mut Verdict) {
    if Duration::from(case.plan.settings.collector_delay) > QUIET {
        return;
    }
    let (history, newest) = (case.history, case.history.newest);
    let mut owned: Vec<(String, Vec<Owner>)> = Vec::new();
    let mut uids: BTreeSet<&str> = BTreeSet::new();
    for key in history.sets.keys() {
        uids.extend(history.sets.at(key, newest).map(|it| it.uid.as_str()));
    }
    for key in history.pods.keys() {
        if let Some(pod) = history.pods.at(key, newest) {
            uids.insert(&pod.uid);
            let owner = pod.controller.iter().cloned().collect();
            owned.push((format!("pod {}", pod.name), owner));
        }
    }
    for key in history.revisions.keys() {
        if let Some(it) = history.revisions.at(key, newest) {
            let owner = it.controller.iter().cloned().collect();
            owned.push((format!("revision {}", it.name), owner));
        }
    }
    for key in history.claims.keys() {
        // One that is being deleted waits for the end of the pods that use it.
        if let Some(claim) = history.claims.at(key, newest).filter(|it| !it.terminating) {
            owned.push((format!("claim {}", claim.name), claim.owners.clone()));
        }
    }
    for (what, owners) in owned {
        let ours = |it: &&Owner| ["StatefulSet", "Pod"].contains(&it.kind.as_str());
        let is_gone = |it: &&Owner| !uids.contains(it.uid.as_str());
        if let Some(owner) = owners.iter().filter(ours).find(is_gone) {
            let message = format!(
                "{what} belongs to {} {}, which is gone",
                owner.kind, owner.name
            );
            verdict.broken("G-5", case.record.length, message);
        }
    }
}

/// P-1: a sync of a set for which nothing is left to do writes nothing, under any leader.
pub(super) fn judge_settled_syncs(case: &Case<'_>, verdict: &mut Verdict) {
    for (number, sync) in case.record.syncs.iter().enumerate() {
        // The class may allow growth by now.
        let mut writes = case.requests_of(number);
        let Some(write) = writes.find(|it| it.is_write() && !is_vain_growth(case, it)) else {
            continue;
        };
        // A sync that fails at a claim's growth says so in the conditions.
        let fails = case.requests_of(number).any(|it| {
            let is_of_claim = it.resource == "persistentvolumeclaims" && it.sent < write.sent;
            is_of_claim && it.has_failed()
        });
        if fails && write.subresource == "status" {
            continue;
        }
        let now = case.early(sync.at);
        let Some(scene) = Scene::of(case, &sync.set, sync.seen, now, sync.process) else {
            continue;
        };
        // Changes of the caches after the start of the sync are newer than the scene.
        let until = case.revision_at(sync.at);
        if !scene.set.terminating
            && is_current(case, sync.seen, until)
            && scene.pending_tasks().is_empty()
            && !opt_ins::tells_of_claims(write, scene.set)
        {
            let message = format!("{}: nothing was left to do", write.named());
            verdict.broken("P-1", write.sent, message);
        }
    }
}

/// Reports whether a claim's growth was refused, as its class may do, or never reached the server.
fn is_vain_growth(case: &Case<'_>, write: &Request) -> bool {
    let is_of_claim = write.resource == "persistentvolumeclaims";
    let is_update = is_of_claim && write.verb == Some(Verb::Update);
    if write.is_refused_growth || !is_update || write.processed.is_some() {
        return write.is_refused_growth;
    }
    let known = case.claim(&write.namespace, &write.name, write.seen.claims);
    known.is_some_and(|known| Claim::read(&write.json()).request > known.request)
}

/// Reports whether caches knew everything that was stored.
fn is_current(case: &Case<'_>, seen: Seen, until: u64) -> bool {
    let versions = [
        ("statefulsets", seen.sets),
        ("pods", seen.pods),
        ("persistentvolumeclaims", seen.claims),
        ("controllerrevisions", seen.revisions),
    ];
    let oldest = versions.iter().map(|(_, version)| *version).min();
    let oldest = oldest.unwrap_or_default();
    let commits = &case.record.commits;
    let from = commits.partition_point(|commit| commit.entry.revision <= oldest);
    let to = commits.partition_point(|commit| commit.entry.revision <= until);
    let mut unknown = commits
        .get(from..to)
        .unwrap_or_default()
        .iter()
        .filter(|commit| {
            let entry = &commit.entry;
            versions.iter().any(|(storage, seen)| {
                *entry.object.key.storage == **storage && entry.revision > *seen
            })
        });
    unknown.next().is_none()
}
