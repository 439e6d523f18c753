//! Processes: their own writes, their predecessors' writes, resends, and panics.

use std::collections::BTreeMap;

use super::Verdict;
use super::case::Case;
use crate::agent::Process;
use crate::record::{ENDS, ENDS_WELL, PANICS, Request, Seen, SetKey};
use kube_test_control_plane::route::Verb;

pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    judge_own_writes(case, verdict);
    judge_takeover(case, verdict);
    judge_panics(case, verdict);
    judge_resends(case, verdict);
}

/// Returns the version of the cache of a resource.
fn seen_of(seen: Seen, resource: &str) -> u64 {
    match resource {
        "statefulsets" => seen.sets,
        "pods" => seen.pods,
        "persistentvolumeclaims" => seen.claims,
        _ => seen.revisions,
    }
}

/// The revision of a successful write whose response arrived. A deletion may be two commits, of which
/// the first already shows the object as terminating.
fn known_revision(case: &Case<'_>, request: &Request) -> Option<u64> {
    let is_ok = request.status.is_some_and(|status| status < 300);
    let processed = request.processed?;
    let revision = match request.verb {
        Some(Verb::Delete) => processed.before + 1,
        // It first takes from a budget, and marks the pod.
        _ if request.evicts() => {
            let key = (request.namespace.clone(), request.name.clone());
            let pods = &case.history.pods;
            let mut changes = pods.changes(&key, processed.before, processed.after);
            changes
                .find(|(_, pod)| pod.is_none_or(|pod| pod.terminating))?
                .0
        }
        _ => processed.after,
    };
    (is_ok && processed.after > processed.before).then_some(revision)
}

/// Reports whether the next sync must see a write. A released pod and a deleted revision no longer
/// concern the set: to write them again has no effect, and an API server that deletes an object
/// returns no version.
fn must_be_seen(request: &Request) -> bool {
    let releases =
        request.verb == Some(Verb::Patch) && request.json().to_string().contains("$patch");
    let truncates = request.verb == Some(Verb::Delete) && request.resource == "controllerrevisions";
    request.is_write() && !releases && !truncates
}

/// P-2: a sync knows all that its process wrote for the set before, unless that is switched off.
fn judge_own_writes(case: &Case<'_>, verdict: &mut Verdict) {
    if !case.plan.settings.consistency {
        return;
    }
    let mut written: BTreeMap<(Process, SetKey), BTreeMap<String, u64>> = BTreeMap::new();
    for (number, sync) in case.record.syncs.iter().enumerate() {
        let written = written.entry((sync.process, sync.set.clone())).or_default();
        for (resource, revision) in written.iter() {
            let seen = seen_of(sync.seen, resource);
            if seen < *revision {
                let message = format!(
                    "process {}: a sync of {} saw {resource} at {seen}, not its write {revision}",
                    sync.process, sync.set.1
                );
                verdict.broken("P-2", sync.at, message);
            }
        }
        for request in case.requests_of(number).filter(|it| must_be_seen(it)) {
            if let Some(revision) = known_revision(case, request) {
                let newest = written.entry(request.resource.clone()).or_default();
                *newest = revision.max(*newest);
            }
        }
    }
}

/// P-3: the first sync of a process knows all that earlier processes of the same controller saw, and
/// all that they wrote before it led.
fn judge_takeover(case: &Case<'_>, verdict: &mut Verdict) {
    // The built-in controller behind a fence is another one.
    let mut sides: BTreeMap<bool, (Option<Process>, Seen)> = BTreeMap::new();
    for sync in &case.record.syncs {
        let side = case.is_built_in(sync.process);
        let (latest, newest) = sides.entry(side).or_default();
        if latest.is_some_and(|process| process != sync.process) {
            let written = written_before(case, sync.process);
            let pairs = [
                (
                    "statefulsets",
                    newest.sets.max(written.sets),
                    sync.seen.sets,
                ),
                ("pods", newest.pods.max(written.pods), sync.seen.pods),
                (
                    "claims",
                    newest.claims.max(written.claims),
                    sync.seen.claims,
                ),
                (
                    "revisions",
                    newest.revisions.max(written.revisions),
                    sync.seen.revisions,
                ),
            ];
            for (resource, before, now) in pairs {
                if now < before {
                    let message = format!(
                        "process {}: its first sync saw {resource} at {now}, an earlier process at {before}",
                        sync.process
                    );
                    verdict.broken("P-3", sync.at, message);
                }
            }
        }
        *latest = Some(sync.process);
        *newest = newest.max_each(sync.seen);
    }
}

/// Returns the newest revision of each resource that other processes had written when this one
/// first held the lease.
fn written_before(case: &Case<'_>, process: Process) -> Seen {
    let held = case.leases.first_held(process).unwrap_or_default();
    let mut newest = Seen::default();
    for request in case.record.requests.iter().filter(|it| it.is_write()) {
        let Some(processed) = request.processed.filter(|it| it.at < held) else {
            continue;
        };
        if request.process == process || processed.after == processed.before {
            continue;
        }
        // The commits of a request that overlaps with another one may be the other's.
        let revision = processed.before + 1;
        let resource = match request.resource.as_str() {
            "statefulsets" => &mut newest.sets,
            "pods" => &mut newest.pods,
            "persistentvolumeclaims" => &mut newest.claims,
            _ => &mut newest.revisions,
        };
        *resource = revision.max(*resource);
    }
    newest
}

/// P-5: nothing panics: neither a sync nor a process, which ends only when it has lost its lease.
fn judge_panics(case: &Case<'_>, verdict: &mut Verdict) {
    for (at, note) in &case.record.notes {
        let ends_well = note.contains(ENDS_WELL) || !note.contains(ENDS);
        if note.contains(PANICS) || !ends_well {
            verdict.broken("P-5", *at, note.clone());
        }
    }
}

/// Attempts to send a write, one after the other, that the API server leaves unprocessed before the
/// sync gives up.
const ATTEMPTS_MAX: usize = 7;

/// P-7: a write that the API server did not process is sent again before the set's next sync, for a
/// write that depends on a read of the set after another one. An eviction depends on a read of its pod,
/// and the next sync repeats both.
fn judge_resends(case: &Case<'_>, verdict: &mut Verdict) {
    let requests = &case.record.requests;
    for (number, request) in requests.iter().enumerate() {
        let is_judged =
            request.is_unprocessed && request.is_write() && request.subresource != "eviction";
        let (Some(sync), true) = (request.sync, is_judged) else {
            continue;
        };
        let Some(next) = case.ended_at(sync) else {
            continue;
        };
        let of_sync = |it: &&Request| it.sync == Some(sync);
        let later = requests[number + 1..].iter().filter(of_sync);
        let mut later = later.take_while(|it| it.sent <= next);
        let is_sent_again = later.any(|it| it.target() == request.target() || is_look(it));
        let earlier = requests[..number].iter().rev().filter(of_sync);
        let earlier = earlier.filter(|it| it.target() == request.target());
        let attempts = 1 + earlier.take_while(|it| it.is_unprocessed).count();
        let stopped = case.stopped(request.process, request.sent, next);
        let allowed = case.leases.allow(request.process, request.sent, next)
            && !case.falls(request.process, request.sent, next);
        if !is_sent_again && attempts < ATTEMPTS_MAX && stopped.is_zero() && allowed {
            let message = format!("{}: not processed and not sent again", request.named());
            verdict.broken("P-7", request.sent, message);
        }
    }
}

/// Reports whether a request reads a set live.
fn is_look(request: &Request) -> bool {
    request.verb == Some(Verb::Get) && request.resource == "statefulsets"
}
