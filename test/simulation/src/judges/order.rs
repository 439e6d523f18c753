//! Order: creation upwards, deletion downwards, claims first.

use super::progress::update_of;
use super::{Case, Verdict, Write, opt_ins};
use crate::views::Set;

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.creates("pods") {
        judge_created(case, write, verdict);
    }
    if let Some((ordinal, _)) = write.deleted_pod() {
        if write.view.set.range().contains(&ordinal) {
            judge_wanted(case, write, ordinal, verdict);
        } else {
            judge_condemned(write, ordinal, verdict);
        }
    }
}

fn judge_created(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (set, at) = (write.view.set, write.request.sent);
    let Some(ordinal) = write.ordinal() else {
        return;
    };
    if !set.range().contains(&ordinal) || set.terminating {
        let message = format!("{}: not wanted", write.named());
        verdict.broken("O-3", at, message);
    }
    if !set.parallel {
        if let Some(missing) = first_unhealthy(write, set.start..ordinal) {
            let message = format!("{}: pod {missing} is not available", write.named());
            verdict.broken("O-1", at, message);
        }
        let created = write
            .earlier
            .iter()
            .any(|it| it.resource == "pods" && creates(it));
        if created {
            let message = format!("{}: the second creation of its sync", write.named());
            verdict.broken("O-2", at, message);
        }
    }
    judge_claims(case, write, ordinal, verdict);
}

fn creates(request: &crate::record::Request) -> bool {
    request.verb == Some(kube_test_control_plane::route::Verb::Create) && !request.evicts()
}

/// O-6: the claims of a new pod exist when it is stored, and the sync saw none that is being
/// deleted. V-6: none will be deleted with an earlier pod.
fn judge_claims(case: &Case<'_>, write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let (set, request) = (write.view.set, write.request);
    for template in &set.claims {
        let name = format!("{template}-{}-{ordinal}", set.name);
        let seen = case.claim(&request.namespace, &name, write.seen.claims);
        let Some(processed) = request.processed else {
            continue;
        };
        let stored = case.claim(&request.namespace, &name, processed.before);
        if stored.is_none() && processed.code < 300 && was_not_deleted(case, write, &name) {
            let message = format!("{}: claim {name} does not exist", write.named());
            verdict.broken("O-6", request.sent, message);
        }
        let is_doomed = |claim: &crate::views::Claim| {
            let pod =
                |owner: &crate::views::Owner| owner.kind == "Pod" && owner.name == request.name;
            claim.terminating || set.deletes_claims_when_scaled() && claim.owners.iter().any(pod)
        };
        let same = seen.zip(stored).is_some_and(|(seen, stored)| {
            seen.uid == stored.uid && is_doomed(seen) && is_doomed(stored)
        });
        if same {
            let message = format!("{}: claim {name} is about to go", write.named());
            verdict.broken("V-6", request.sent, message);
        }
    }
}

/// Reports whether the claim was not deleted between the start of the sync and the write.
fn was_not_deleted(case: &Case<'_>, write: &Write<'_>, claim: &str) -> bool {
    let key = (write.request.namespace.clone(), claim.to_owned());
    let until = write
        .request
        .processed
        .map_or(0, |processed| processed.before);
    let since = write.seen.claims;
    let mut changes = case.history.claims.changes(&key, since, until);
    !changes.any(|(_, claim)| claim.is_none())
}

/// O-5: a desired pod is deleted because it ended, for its revision, or for a volume that waits for that.
fn judge_wanted(case: &Case<'_>, write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let Some(pod) = write.view.members.get(&ordinal) else {
        return;
    };
    let (set, at) = (write.view.set, write.request.sent);
    let no_restart = opt_ins::check_restart(case, write).err();
    let Some(no_restart) = no_restart.filter(|_| !pod.has_ended()) else {
        return;
    };
    if set.is_on_delete() || set.terminating {
        let message = format!("{}: the user deletes pods of this set", write.named());
        verdict.broken("O-5", at, message);
    }
    let members = write.view.members.values().copied();
    let update = update_of(case, write).map(|it| it.name.as_str());
    let partition = opt_ins::partition(case, write.sync.process, set, members, update);
    if ordinal - set.start < partition {
        let message = format!("{}: below the partition", write.named());
        verdict.broken("B-3", at, message);
    }
    // A pod in flight may have come from this revision and can't return to it.
    let is_marked = opt_ins::is_marked(pod);
    let is_current = write.view.update.is_some_and(|it| it.name == pod.revision);
    if is_current && !is_marked {
        let message = format!(
            "{}: it has the update revision, and this is no restart for a volume: {no_restart}",
            write.named()
        );
        verdict.broken("O-5", at, message);
    }
    // B-5: scaling comes before updating. A repair lets it go on.
    let is_scaling = set.range().any(|it| !write.view.members.contains_key(&it))
        || write
            .view
            .members
            .keys()
            .any(|it| !set.range().contains(it));
    if !set.parallel && is_scaling && !is_marked && !opt_ins::is_repair(case, write) {
        let message = format!("{}: the set is still scaling", write.named());
        verdict.broken("B-5", at, message);
    }
}

/// O-4: an ordered set deletes one condemned pod per sync, highest ordinal first, once all desired
/// pods are available. An unavailable condemned pod waits for unavailable lower ones. A lower pod
/// that still stops doesn't hold up an adopted higher one, as in upstream.
fn judge_condemned(write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let (set, members, at) = (write.view.set, &write.view.members, write.request.sent);
    if set.terminating {
        let message = format!("{}: the set is being deleted", write.named());
        verdict.broken("G-3", at, message);
    }
    if set.parallel {
        return;
    }
    let mut broken = |why: String| {
        let message = format!("{}: {why}", write.named());
        verdict.broken("O-4", at, message);
    };
    if let Some(unhealthy) = first_unhealthy(write, set.range()) {
        broken(format!("pod {unhealthy} is not available"));
    }
    let is_condemned = |it: &u32| !set.range().contains(it);
    let condemned = members.iter().filter(|(it, _)| is_condemned(it));
    if condemned.clone().any(|(it, _)| *it > ordinal) {
        broken("a higher pod is still there".to_owned());
    }
    let is_healthy = |it: u32| {
        members
            .get(&it)
            .is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.now))
    };
    let first = condemned.clone().find(|(it, _)| !is_healthy(**it));
    if !is_healthy(ordinal) && first.is_some_and(|(it, _)| *it != ordinal) {
        broken("another condemned pod is unavailable, too".to_owned());
    }
    let deleted = write.earlier.iter().any(|it| {
        it.resource == "pods" && it.verb == Some(kube_test_control_plane::route::Verb::Delete)
    });
    if deleted {
        broken("the second deletion of its sync".to_owned());
    }
}

/// Returns the first of these pods that isn't available, or is missing.
fn first_unhealthy(write: &Write<'_>, mut ordinals: std::ops::Range<u32>) -> Option<u32> {
    let set: &Set = write.view.set;
    ordinals.find(|ordinal| {
        let pod = write.view.members.get(ordinal);
        !pod.is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.now))
    })
}
