//! The search for situations in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;

use crate::agent::{Process, USER};
use crate::judges::{Case, Write, belongs};
use crate::plan::{Action, Trigger};
use crate::record::{Commit, Request};
use crate::views::{Claim, Owner};
use crate::world::{FORMER, NEW_MEMBER};

type Reached = BTreeSet<&'static str>;

/// Lag, in revisions of the store, that is far behind.
const FAR: u64 = 30;

/// Time within which a user's action is stored.
const PROMPT: Duration = Duration::from_secs(1);

/// Finalizer of a set that is deleted in the foreground.
const FOREGROUND: &str = "foregroundDeletion";

/// Crashes, takeovers, leases.
pub(super) fn processes(case: &Case<'_>, reached: &mut Reached) {
    for (_, note) in &case.record.notes {
        if note.contains("ends:") {
            reached.insert("a lease is lost");
        }
        if note.starts_with("instance") && note.ends_with("crashes") {
            reached.insert("a process crashes");
        }
        if note.starts_with("process") && note.ends_with("crashes") {
            reached.insert("a process crashes at a write");
        }
    }
    let mut latest: Option<Process> = None;
    let mut instances: Vec<usize> = Vec::new();
    for (number, sync) in case.record.syncs.iter().enumerate() {
        let process = sync.process;
        if latest == Some(process) {
            continue;
        }
        if let Some(latest) = latest {
            reached.insert("a takeover happens");
            if case.minor(latest) != case.minor(process) {
                reached.insert("a takeover brings another version");
            }
        }
        if instances.contains(&process.instance) {
            reached.insert("an instance leads for the second time");
        }
        instances.push(process.instance);
        let view = case.view(number).filter(|_| latest.is_some());
        if let Some(view) = view {
            let revisions: BTreeSet<&str> = view
                .members
                .values()
                .map(|pod| pod.revision.as_str())
                .collect();
            if revisions.len() > 1 {
                reached.insert("a takeover happens during a rollout");
            }
            if !view.members.keys().copied().eq(view.set.range()) {
                reached.insert("a takeover happens during scaling");
            }
        }
        latest = Some(process);
    }
    if case.record.postponed > 0 {
        reached.insert("a sync is postponed until the caches show its writes");
    }
}

/// Fates of requests.
pub(super) fn requests(case: &Case<'_>, reached: &mut Reached) {
    let mut starts: BTreeMap<Process, Duration> = BTreeMap::new();
    let mut watched: BTreeSet<(Process, &str)> = BTreeSet::new();
    for request in &case.record.requests {
        starts.entry(request.process).or_insert(request.sent);
        let key = (request.process, request.resource.as_str());
        match request.verb {
            Some(Verb::Watch) if request.status == Some(200) => drop(watched.insert(key)),
            Some(Verb::List) if watched.contains(&key) => {
                reached.insert("a resource is listed again after a watch");
            }
            _ => {}
        }
    }
    for request in case.record.requests.iter().filter(|it| it.is_write()) {
        reached.extend(rejection(request));
        if request.is_unprocessed {
            reached.insert("a write is sent again after a GOAWAY");
            continue;
        }
        let Some(processed) = request.processed else {
            if request.denied.is_none() {
                reached.insert("a write never arrives");
            }
            continue;
        };
        if request.status.is_none() && processed.code < 300 {
            reached.extend(lost_answer(request));
        }
        let next = Process {
            life: request.process.life + 1,
            ..request.process
        };
        if starts.get(&next).is_some_and(|start| *start < processed.at) {
            reached.insert("a write arrives after its process ended");
        }
        let mut syncs = case.record.syncs.iter();
        let other = syncs.find(|sync| {
            sync.process != request.process && sync.at > request.sent && sync.at < processed.at
        });
        if other.is_some() {
            reached.insert("a write arrives after its sender lost the lease");
        }
    }
}

fn rejection(request: &Request) -> Option<&'static str> {
    Some(match (request.status?, request.verb?) {
        (409, Verb::Create) => "a write is rejected: already exists",
        (409, _) => "a write is rejected: conflict",
        (403, _) => "a write is rejected: forbidden",
        (404, _) => "a write is rejected: not found",
        (422, _) => "a write is rejected: invalid",
        (429, _) => "a write is rejected: too many requests",
        _ => return None,
    })
}

fn lost_answer(request: &Request) -> Option<&'static str> {
    Some(match (request.resource.as_str(), request.verb?) {
        ("pods", Verb::Create) => "the response to a pod's creation is lost",
        ("pods", Verb::Delete) => "the response to a pod's deletion is lost",
        ("persistentvolumeclaims", Verb::Update) => "the response to a claim's change is lost",
        ("controllerrevisions", Verb::Create) => "the response to a revision's creation is lost",
        ("statefulsets", _) => "the response to a status is lost",
        _ => return None,
    })
}

/// Decisions of syncs.
pub(super) fn syncs(case: &Case<'_>, reached: &mut Reached) {
    let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
    for (number, sync) in case.record.syncs.iter().enumerate() {
        let seen = sync.seen;
        let versions = [seen.sets, seen.pods, seen.claims, seen.revisions];
        let (oldest, newest) = (versions.iter().min(), versions.iter().max());
        if oldest
            .zip(newest)
            .is_some_and(|(old, new)| old + FAR < *new)
        {
            reached.insert("a sync begins on caches of different ages");
        }
        let commits = &case.record.commits;
        let known = commits.partition_point(|commit| commit.at < sync.at);
        let stored = known.checked_sub(1).and_then(|last| commits.get(last));
        if stored.is_some_and(|commit| newest.is_some_and(|it| it + FAR < commit.entry.revision)) {
            reached.insert("a sync begins on caches that are far behind");
        }
        if !case.requests_of(number).any(Request::is_write) {
            reached.insert("a sync changes nothing");
        }
        if case.view(number).is_some_and(|view| view.set.terminating) {
            reached.insert("a set is synced while it is being deleted");
        }
    }
    for write in case.writes() {
        let counts = counts
            .entry(write.request.sync.unwrap_or_default())
            .or_default();
        self::write(case, &write, counts, reached);
    }
    for counts in counts.values() {
        if counts.created > 1 {
            reached.insert("a parallel sync creates several pods");
        }
        if counts.condemned > 1 {
            reached.insert("a parallel sync deletes several condemned pods");
        }
        match counts.updated {
            0 => {}
            1 => drop(reached.insert("a sync deletes one pod for an update")),
            _ => drop(reached.insert("a sync deletes several pods for an update")),
        }
    }
}

/// Pods that one sync created and deleted.
#[derive(Default)]
struct Counts {
    created: usize,
    condemned: usize,
    updated: usize,
}

fn write(case: &Case<'_>, write: &Write<'_>, counts: &mut Counts, reached: &mut Reached) {
    let (set, request) = (write.view.set, write.request);
    if set.start > 0 {
        reached.insert("a set starts above ordinal zero");
    }
    match (request.resource.as_str(), request.verb) {
        ("pods", Some(Verb::Create)) => {
            counts.created += 1;
            created(write, reached);
        }
        ("pods", Some(Verb::Delete)) => deleted(write, counts, reached),
        ("pods", Some(Verb::Patch)) if request.resizes() => {
            reached.insert("a pod is resized");
        }
        ("pods", Some(Verb::Patch)) => {
            let releases = request.json().to_string().contains("$patch");
            reached.insert(if releases {
                "a pod is released"
            } else {
                "a pod is adopted"
            });
            if !releases && inherits(case, write) {
                reached.insert("a set is orphaned and its pods are adopted");
            }
        }
        ("persistentvolumeclaims", Some(Verb::Create)) => {
            reached.insert("a claim is created");
        }
        ("persistentvolumeclaims", _) => claim(case, write, reached),
        ("controllerrevisions", Some(Verb::Create)) => {
            reached.insert("a revision is created");
        }
        ("controllerrevisions", Some(Verb::Delete)) => {
            reached.insert("a revision is deleted");
        }
        ("controllerrevisions", Some(Verb::Update)) => {
            reached.insert("a rollback raises an old revision");
        }
        ("controllerrevisions", _) => {
            reached.insert("a revision is adopted");
        }
        ("statefulsets", _) => {
            let status = crate::views::Set::read(&request.json()).status;
            let old = &set.status.current_revision;
            if !old.is_empty() && status.current_revision != *old {
                reached.insert("a rollout completes");
            }
        }
        _ => {}
    }
}

/// Reports whether an adoption was stored and an earlier set owned the pod.
fn inherits(case: &Case<'_>, write: &Write<'_>) -> bool {
    let (pods, key) = (&case.history.pods, write.key());
    let Some(stored) = write.request.processed.filter(|it| it.code < 300) else {
        return false;
    };
    let Some(adopted) = pods.at(&key, stored.after) else {
        return false;
    };
    let mut earlier = pods.during(&key, 0, stored.before);
    earlier.any(|pod| {
        let owner = pod.controller.as_ref();
        let is_other = owner.is_some_and(|it| it.uid != write.view.set.uid);
        is_other && pod.uid == adopted.uid
    })
}

fn created(write: &Write<'_>, reached: &mut Reached) {
    let (view, set) = (&write.view, write.view.set);
    let Some(ordinal) = write.ordinal() else {
        return;
    };
    let body = write.request.json();
    let label = "/metadata/labels/controller-revision-hash";
    let revision = body.pointer(label).and_then(serde_json::Value::as_str);
    let updates = view
        .update
        .is_some_and(|it| revision == Some(it.name.as_str()));
    if !updates && revision == Some(set.status.current_revision.as_str()) && set.partition > 0 {
        reached.insert("a pod gets the current revision below the partition");
    }
    let differs = set.status.current_revision != set.status.update_revision;
    if set.is_on_delete() && differs && updates {
        reached.insert("a pod of an OnDelete set gets the new revision");
    }
    let lower = view.members.range(..ordinal);
    if set.parallel && lower.into_iter().any(|(_, pod)| !pod.is_ready()) {
        reached.insert("a pod is created while a lower one of a parallel set is unavailable");
    }
}

fn deleted(write: &Write<'_>, counts: &mut Counts, reached: &mut Reached) {
    let Some((ordinal, pod)) = write.deleted_pod() else {
        return;
    };
    let set = write.view.set;
    if !set.range().contains(&ordinal) {
        counts.condemned += 1;
        if !set.parallel {
            reached.insert("a set is scaled down one by one");
        }
        if !pod.is_ready() {
            reached.insert("a condemned pod that is unavailable is deleted");
        }
        if set.replicas == 0 {
            reached.insert("a set is scaled to zero");
        }
        return;
    }
    match pod.phase.as_str() {
        "Failed" => drop(reached.insert("a failed pod is replaced")),
        "Succeeded" => drop(reached.insert("a succeeded pod is replaced")),
        _ => {
            counts.updated += 1;
            if pod.image.starts_with("bad") {
                reached.insert("a pod of an image that never becomes ready is replaced");
            }
        }
    }
}

fn claim(case: &Case<'_>, write: &Write<'_>, reached: &mut Reached) {
    let request = write.request;
    let wanted = Claim::read(&request.json());
    let Some(stored) = case.claim(&request.namespace, &request.name, write.seen.claims) else {
        return;
    };
    let stale = |claim: &Claim| {
        let is_former = |it: &&Owner| it.uid.starts_with(FORMER);
        claim.owners.iter().filter(is_former).count()
    };
    if stale(&wanted) < stale(stored) {
        reached.insert("a claim loses stale owners together with its pod");
    }
    let has = |claim: &Claim, kind: &str| claim.owners.iter().any(|it| it.kind == kind);
    let pairs = [
        (
            "Pod",
            "a claim is given to a condemned pod",
            "a claim is taken back from a pod",
        ),
        (
            "StatefulSet",
            "a claim is given to its set",
            "a claim is taken back from its set",
        ),
    ];
    for (kind, given, taken) in pairs {
        match (has(stored, kind), has(&wanted, kind)) {
            (false, true) => drop(reached.insert(given)),
            (true, false) => drop(reached.insert(taken)),
            _ => {}
        }
    }
}

/// Commits of others, and their results.
pub(super) fn commits(case: &Case<'_>, reached: &mut Reached) {
    let newest = case.history.newest;
    let mut claims: BTreeSet<(String, String)> = BTreeSet::new();
    for commit in &case.record.commits {
        let key = &commit.entry.object.key;
        let name = (key.namespace.to_string(), key.name.to_string());
        let at = commit.entry.revision;
        match (&*key.storage, commit.entry.change) {
            ("persistentvolumeclaims", Change::Deleted) => {
                claims.insert(name);
            }
            ("persistentvolumeclaims", Change::Added) if claims.contains(&name) => {
                reached.insert("a claim is deleted and created again");
            }
            ("statefulsets", Change::Modified) => {
                let set = case.history.sets.at(&name, at);
                let member = format!("/spec/{NEW_MEMBER}");
                if set.is_some_and(|set| set.stored.pointer(&member).is_some()) {
                    reached.insert("a template gets a member of a newer API server");
                }
                if set.is_some_and(|set| set.finalizers.iter().any(|it| it == FOREGROUND)) {
                    reached.insert("a set is deleted in the foreground");
                }
            }
            ("statefulsets", Change::Deleted) if *commit.agent == *USER => {
                reached.insert("a set is deleted in the background");
            }
            ("statefulsets", Change::Added) => {
                let mut pods = case.history.pods.all_at(&name.0, at);
                if pods.any(|pod| pod.ordinal(&name.1).is_some()) {
                    reached.insert("a set is created again while old pods exist");
                }
            }
            ("pods", Change::Deleted) if is_forced(case, commit) => {
                reached.insert("a pod is force-deleted by a user");
            }
            _ => {}
        }
    }
    for key in case.history.claims.keys() {
        let claim = case.history.claims.at(key, newest);
        let foreign = |it: &Owner| it.controller && it.kind == "ConfigMap";
        if claim.is_some_and(|claim| claim.owners.iter().any(foreign)) {
            reached.insert("a claim of another controller is left alone");
        }
    }
    let mut sets = 0;
    // Users remove such pods when they repair their damage.
    let repair = case.record.calm.saturating_sub(Duration::from_millis(1));
    let before_repair = case.revision_at(repair);
    for key in case.history.sets.keys() {
        let Some(set) = case.history.sets.at(key, newest) else {
            continue;
        };
        sets += 1;
        let mut pods = case.history.pods.all_at(&key.0, before_repair);
        let decoy = |pod: &crate::views::Pod| {
            pod.image == "decoy" && belongs(set, pod) && pod.ordinal(&set.name).is_none()
        };
        if pods.any(|pod| decoy(pod)) {
            reached.insert("a pod with a name that is not canonical is left alone");
        }
    }
    if sets > 1 {
        reached.insert("two sets run side by side");
    }
}

/// Reports whether a user's removal of a pod belongs to a planned forced deletion.
fn is_forced(case: &Case<'_>, commit: &Commit) -> bool {
    let mut steps = case.plan.steps.iter();
    let forced = steps.any(|step| match (&step.action, step.at) {
        (Action::DeletePod { pod, force: true }, Trigger::Time(at)) => {
            let at = Duration::from(at);
            *pod == *commit.entry.object.key.name && (at..at + PROMPT).contains(&commit.at)
        }
        _ => false,
    });
    forced && *commit.agent == *USER
}
