//! Processes: their own writes, their predecessors' writes, and the lease.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_test_control_plane::route::Verb;
use serde_json::Value;

use super::Verdict;
use super::case::Case;
use crate::agent::Process;
use crate::instance::LEASE;
use crate::record::{Request, Seen, SetKey};

/// Syncs of one set within [`BUSY_TIME`] that make a hot loop.
const BUSY_MAX: usize = 400;

/// Window of the search for hot loops.
const BUSY_TIME: Duration = Duration::from_secs(10);

pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    judge_own_writes(case, verdict);
    judge_takeover(case, verdict);
    judge_lease(case, verdict);
    judge_hot_loops(case, verdict);
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

/// The revision of a successful write whose answer arrived. A deletion may be two commits, of which
/// the first already shows the object as terminating.
fn known_revision(request: &Request) -> Option<u64> {
    let is_ok = request.status.is_some_and(|status| status < 300);
    let processed = request.processed?;
    let revision = match request.verb {
        Some(Verb::Delete) => processed.before + 1,
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

/// P-2: a sync knows all that its process wrote for the set before.
fn judge_own_writes(case: &Case<'_>, verdict: &mut Verdict) {
    type Written = BTreeMap<String, u64>;
    let mut written: BTreeMap<(Process, SetKey), Written> = BTreeMap::new();
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
            if let Some(revision) = known_revision(request) {
                let newest = written.entry(request.resource.clone()).or_default();
                *newest = revision.max(*newest);
            }
        }
    }
}

/// P-3: the first sync of a process knows all that earlier processes saw or wrote before it led.
fn judge_takeover(case: &Case<'_>, verdict: &mut Verdict) {
    let mut newest = Seen::default();
    let mut latest: Option<Process> = None;
    for sync in &case.record.syncs {
        if latest.is_some_and(|process| process != sync.process) {
            let pairs = [
                ("statefulsets", newest.sets, sync.seen.sets),
                ("pods", newest.pods, sync.seen.pods),
                ("claims", newest.claims, sync.seen.claims),
                ("revisions", newest.revisions, sync.seen.revisions),
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
        latest = Some(sync.process);
        newest = Seen {
            sets: newest.sets.max(sync.seen.sets),
            pods: newest.pods.max(sync.seen.pods),
            claims: newest.claims.max(sync.seen.claims),
            revisions: newest.revisions.max(sync.seen.revisions),
        };
    }
}

/// P-4: no write starts while another process holds the lease, or after the lease ended.
fn judge_lease(case: &Case<'_>, verdict: &mut Verdict) {
    let lease = Duration::from_secs(case.plan.settings.lease.lease);
    let holders = case.record.commits.iter().filter_map(|commit| {
        let key = &commit.entry.object.key;
        if key.storage != "leases" || &*key.name != LEASE {
            return None;
        }
        let value = commit.entry.object.draft().to_value();
        let holder = value
            .pointer("/spec/holderIdentity")
            .and_then(Value::as_str);
        Some((commit.at, holder.unwrap_or_default().to_owned()))
    });
    let holders: Vec<(Duration, String)> = holders.collect();
    for request in case.record.requests.iter().filter(|it| it.is_write()) {
        let known = holders.partition_point(|(at, _)| *at <= request.sent);
        let holder = known.checked_sub(1).and_then(|last| holders.get(last));
        let own = format!("controller-{}", request.process);
        let holds =
            holder.is_some_and(|(since, holder)| *holder == own && request.sent < *since + lease);
        if !holds {
            let message = format!(
                "process {} wrote {} {} while {holder:?} held the lease",
                request.process, request.resource, request.name
            );
            verdict.broken("P-4", request.sent, message);
        }
    }
}

/// P-6: no set is synced again and again without a pause.
fn judge_hot_loops(case: &Case<'_>, verdict: &mut Verdict) {
    let mut times: BTreeMap<(Process, &SetKey), Vec<Duration>> = BTreeMap::new();
    for sync in &case.record.syncs {
        let times = times.entry((sync.process, &sync.set)).or_default();
        times.push(sync.at);
    }
    for ((process, set), times) in times {
        let mut windows = times.windows(BUSY_MAX);
        let busy = windows.find(|it| it[BUSY_MAX - 1].saturating_sub(it[0]) < BUSY_TIME);
        if let Some(window) = busy {
            let message = format!("process {process}: a hot loop of set {}", set.1);
            verdict.broken("P-6", window[0], message);
        }
    }
}
