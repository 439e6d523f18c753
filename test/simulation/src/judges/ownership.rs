//! Adoption, release, and sets that are being deleted.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;
use serde_json::Value;

use super::{Case, Verdict, Write};
use crate::record::SetKey;

/// Part of the garbage collector's user agent.
pub(super) const COLLECTOR: &str = "/garbage-collector";

/// The finalizer of a set whose dependents stay when it is deleted.
const ORPHANS: &str = "orphan";

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if request.verb == Some(Verb::Patch) && !request.resizes() {
        judge_patch(case, write, verdict);
    }
    let is_of_pods = ["pods", "persistentvolumeclaims"].contains(&request.resource.as_str());
    if write.view.set.terminating && is_of_pods {
        let message = format!("{}: the set is being deleted", write.named());
        verdict.broken("G-3", request.sent, message);
    }
}

/// An orphan or a dependent, as the rules of adoption see it.
struct Dependent<'a> {
    uid: &'a str,
    owner: Option<&'a str>,
    matches: bool,
    terminating: bool,
}

/// Returns what the sync can have known about the object of a patch.
fn dependents<'a>(case: &'a Case<'_>, write: &Write<'a>) -> Vec<Dependent<'a>> {
    let (set, seen) = (write.view.set, write.seen);
    if write.request.resource == "pods" {
        let pods = write.versions(&case.history.pods, seen.pods);
        let read = pods.map(|pod| Dependent {
            uid: &pod.uid,
            owner: pod.controller.as_ref().map(|owner| owner.uid.as_str()),
            matches: pod.app == set.app && pod.ordinal(&set.name).is_some(),
            terminating: pod.terminating,
        });
        return read.collect();
    }
    let revisions = write.versions(&case.history.revisions, seen.revisions);
    let read = revisions.map(|it| Dependent {
        uid: &it.uid,
        owner: it.controller.as_ref().map(|owner| owner.uid.as_str()),
        matches: it.app == set.app,
        terminating: false,
    });
    read.collect()
}

fn judge_patch(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (request, set) = (write.request, write.view.set);
    let body = request.json();
    let owners = body.pointer("/metadata/ownerReferences");
    let Some([owner]) = owners.and_then(Value::as_array).map(Vec::as_slice) else {
        let message = format!("{}: not a single owner", write.named());
        verdict.broken("G-1", request.sent, message);
        return;
    };
    let uid = write.text("/metadata/uid").unwrap_or_default();
    let own = owner["uid"] == set.uid.as_str();
    let known = dependents(case, write);
    let known: Vec<&Dependent<'_>> = known.iter().filter(|it| it.uid == uid).collect();
    let release = owner.get("$patch").is_some();
    let (rule, is_right) = if release {
        ("G-2", may_release(&known, set))
    } else {
        let looked = looked(case, write);
        ("G-1", looked && may_adopt(&known, set))
    };
    let others = body["metadata"].as_object().map_or(0, serde_json::Map::len);
    if !own || !is_right || others != 2 {
        let message = format!("{}: adoption or release not allowed: {body}", write.named());
        verdict.broken(rule, request.sent, message);
    }
}

/// G-2: a pod is released only by its set, only if the selector no longer matches, and not by a set
/// that is being deleted.
fn may_release(known: &[&Dependent<'_>], set: &crate::views::Set) -> bool {
    let owned = |it: &&&Dependent<'_>| it.owner == Some(set.uid.as_str()) && !it.matches;
    !set.terminating && known.iter().any(|it| owned(&it))
}

/// G-1: an orphan is adopted if it matches and stays, by a set that isn't being deleted.
fn may_adopt(known: &[&Dependent<'_>], set: &crate::views::Set) -> bool {
    let orphan = |it: &&Dependent<'_>| it.owner.is_none() && it.matches && !it.terminating;
    !set.terminating && known.iter().any(orphan)
}

/// G-1: before an adoption, a read of the set showed it alive.
fn looked(case: &Case<'_>, write: &Write<'_>) -> bool {
    let set = write.view.set;
    write.earlier.iter().any(|it| {
        let is_look = it.verb == Some(Verb::Get) && it.resource == "statefulsets";
        let live = it
            .processed
            .and_then(|processed| case.history.sets.at(&write.sync.set, processed.before));
        let alive = live.is_some_and(|live| live.uid == set.uid && !live.terminating);
        let in_time = it.answered.is_some_and(|at| at <= write.request.sent);
        is_look && it.status == Some(200) && alive && in_time
    })
}

/// G-4: the garbage collector deletes no dependent of a set deleted with `--cascade=orphan`.
pub(super) fn judge_orphans(case: &Case<'_>, verdict: &mut Verdict) {
    // The uids of the dependents that each such set leaves.
    let mut left: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for commit in &case.record.commits {
        let (entry, key) = (&commit.entry, &commit.entry.object.key);
        let name: SetKey = (key.namespace.to_string(), key.name.to_string());
        if &*key.storage == "statefulsets" {
            // A later deletion with another cascade replaces the earlier one.
            if let Some(set) = case.history.sets.at(&name, entry.revision) {
                let leaves = set.terminating && set.finalizers.iter().any(|it| it == ORPHANS);
                if leaves {
                    let owned = dependents_of(case, &name.0, &set.uid, entry.revision);
                    left.entry(&set.uid).or_insert_with(|| owned.collect());
                } else {
                    left.remove(set.uid.as_str());
                }
            } else if !commit.agent.contains(COLLECTOR) {
                let before = entry.revision.saturating_sub(1);
                let set = case.history.sets.at(&name, before);
                set.map(|set| left.remove(set.uid.as_str()));
            }
            continue;
        }
        if !commit.agent.contains(COLLECTOR) {
            continue;
        }
        let (pods, revisions) = (&case.history.pods, &case.history.revisions);
        let before = entry.revision.saturating_sub(1);
        let dependent = match &*key.storage {
            "pods" => pods.at(&name, before).map(|it| (&it.uid, &it.controller)),
            "controllerrevisions" => {
                let revision = revisions.at(&name, before);
                revision.map(|it| (&it.uid, &it.controller))
            }
            _ => None,
        };
        let is_left = dependent.is_some_and(|(uid, owner)| {
            let left = owner
                .as_ref()
                .and_then(|owner| left.get(owner.uid.as_str()));
            left.is_some_and(|left| left.contains(uid))
        });
        let terminates = |at| pods.at(&name, at).is_some_and(|it| it.terminating);
        let goes =
            entry.change == Change::Deleted || terminates(entry.revision) && !terminates(before);
        if goes && is_left {
            let message = format!(
                "{}: deleted although its set was deleted with --cascade=orphan",
                key.name
            );
            verdict.broken("G-4", commit.at, message);
        }
    }
}

/// Returns the uids of the pods and revisions that a set controls.
fn dependents_of<'a>(
    case: &'a Case<'_>,
    namespace: &str,
    set: &'a str,
    at: u64,
) -> impl Iterator<Item = String> {
    let pods = case.history.pods.all_at(namespace, at);
    let revisions = case.history.revisions.all_at(namespace, at);
    // An earlier deletion in the foreground takes the pods that it has reached.
    let pods = pods
        .filter(move |it| it.is_of(set) && !it.terminating)
        .map(|it| it.uid.clone());
    let revisions = revisions
        .filter(move |it| it.is_of(set))
        .map(|it| it.uid.clone());
    pods.chain(revisions)
}
