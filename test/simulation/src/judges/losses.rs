//! Claims removed by the garbage collector.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_test_control_plane::route::Verb;
use kube_test_control_plane::store::Change;

use super::ownership::COLLECTOR;
use super::progress::comes_to_status;
use super::volumes::ClaimDeletionCause;
use super::{Case, Verdict};
use crate::record::{Commit, Request, SetKey, Sync};
use crate::views::{Claim, Owner, Pod, Set, is_named_as};

/// V-5: the garbage collector removes a claim because its owners are gone. When each of them was
/// added, the stored spec, or the one that the sync's last live read showed, desired that.
pub(super) fn judge_removals(case: &Case<'_>, verdict: &mut Verdict) {
    let mut removed: BTreeSet<String> = BTreeSet::new();
    for commit in &case.record.commits {
        let (entry, key) = (&commit.entry, &commit.entry.object.key);
        if &*key.storage != "persistentvolumeclaims" || !commit.agent.contains(COLLECTOR) {
            continue;
        }
        let name: SetKey = (key.namespace.to_string(), key.name.to_string());
        let claims = &case.history.claims;
        let Some(claim) = claims.at(&name, entry.revision.saturating_sub(1)) else {
            continue;
        };
        let goes = entry.change == Change::Deleted
            || claims
                .at(&name, entry.revision)
                .is_some_and(|it| it.terminating);
        if !goes || !removed.insert(claim.uid.clone()) {
            continue;
        }
        verdict.removed += 1;
        for owner in &claim.owners {
            judge_owner(case, commit, &name, claim, owner, verdict);
        }
        let kept = keeper(case, &name, entry.revision);
        verdict.removed_kept += usize::from(kept.is_some());
    }
}

/// Judges the commit that gave a claim an owner with which it went.
fn judge_owner(
    case: &Case<'_>,
    removal: &Commit,
    name: &SetKey,
    claim: &Claim,
    owner: &Owner,
    verdict: &mut Verdict,
) {
    let has = |claim: &Arc<Claim>| claim.owners.iter().any(|it| it.uid == owner.uid);
    let mut versions = case.history.claims.changes(name, 0, removal.entry.revision);
    let Some((added, _)) = versions.find(|(_, version)| version.is_some_and(has)) else {
        return;
    };
    let commit = case.commit(added);
    let request = commit.and_then(|commit| commit.request);
    // Users and other controllers may give it away as well.
    let Some(request) = request.and_then(|number| case.record.requests.get(number)) else {
        return;
    };
    let set = request.sync.and_then(|sync| case.record.syncs.get(sync));
    let Some(set) = set.map(|sync| &sync.set) else {
        return;
    };
    let cause = case
        .history
        .sets
        .during(set, added, added)
        .next()
        .and_then(|set| {
            Some((
                set,
                ClaimDeletionCause::of(owner, set.ordinal_of_claim(&claim.name)?)?,
            ))
        });
    // The read before the write, which judge_claim_deletion found, showed a spec that desired it.
    let looked = case
        .requests_of(request.sync.unwrap_or_default())
        .any(|it| {
            let is_look = it.verb == Some(Verb::Get) && it.resource == "statefulsets";
            let seen = it
                .processed
                .and_then(|it| case.history.sets.at(set, it.before));
            let wants = |seen: &Arc<Set>| {
                let ordinal = seen.ordinal_of_claim(&claim.name);
                ordinal
                    .and_then(|ordinal| ClaimDeletionCause::of(owner, ordinal))
                    .is_some_and(|cause| cause.is_wanted_by(seen))
            };
            is_look && it.sent <= request.sent && seen.is_some_and(wants)
        });
    if !looked && cause.is_none_or(|(set, cause)| !cause.is_wanted_by(set)) {
        let message = format!(
            "claim {} is lost: the spec kept it when it got {owner:?}",
            name.1
        );
        verdict.broken("V-5", removal.at, message);
    }
}

/// Returns the set whose stored spec keeps a claim.
fn keeper<'a>(case: &Case<'a>, name: &SetKey, at: u64) -> Option<&'a Arc<Set>> {
    let mut sets = case.history.sets.all_at(&name.0, at);
    sets.find(|set| {
        let ordinal = set.ordinal_of_claim(&name.1);
        !set.terminating && ordinal.is_some_and(|ordinal| set.range().contains(&ordinal))
    })
}

/// V-2: a sync that ends well leaves no claim that the set keeps with its pod.
pub(super) fn judge_kept_claims(case: &Case<'_>, verdict: &mut Verdict) {
    for (number, sync) in case.ended_syncs() {
        let Some(view) = case.view(number).filter(|view| !view.set.terminating) else {
            continue;
        };
        let requests: Vec<&Request> = case.requests_of(number).collect();
        let mut failed = requests
            .iter()
            .filter(|it| it.status.is_none_or(|status| status >= 300));
        let ends_well = failed.next().is_none()
            && comes_to_status(case, sync, &requests)
            && !finds_another_set(case, sync, view.set, &requests);
        if !ends_well {
            continue;
        }
        let (set, namespace) = (view.set, &sync.set.0);
        for (ordinal, pod) in &view.members {
            if !set.keeps_claims_of(*ordinal) {
                continue;
            }
            for name in set.claims_of(*ordinal) {
                let key = (namespace.clone(), name);
                let until = case.revision_at(case.ended_at(number).unwrap_or(sync.at));
                let claims = case.history.claims.during(&key, sync.seen.claims, until);
                let stays = case.history.claims.at(&key, until).is_some();
                let belonged = all(claims, |claim| is_ours_alone(claim, pod, set));
                let released = case
                    .requests_of(number)
                    .any(|it| it.name == key.1 && it.verb == Some(Verb::Update));
                if stays && belonged && !released {
                    let message = format!("claim {} stays with pod {}", key.1, pod.name);
                    verdict.broken("V-2", sync.at, message);
                }
            }
        }
    }
}

/// Reports whether a live read of the set showed another set or spec than the sync's: the sync refuses
/// its write and ends with an error.
fn finds_another_set(case: &Case<'_>, sync: &Sync, known: &Set, requests: &[&Request]) -> bool {
    let mut looks = requests
        .iter()
        .filter(|it| it.verb == Some(Verb::Get) && it.resource == "statefulsets");
    looks.any(|look| {
        let shown = look
            .processed
            .and_then(|it| case.history.sets.at(&sync.set, it.before));
        shown.is_none_or(|it| {
            it.uid != known.uid || it.generation != known.generation || it.terminating
        })
    })
}

/// Reports whether there are claims, and all of them are so.
fn all<'a>(claims: impl Iterator<Item = &'a Arc<Claim>>, is_so: impl Fn(&Claim) -> bool) -> bool {
    let mut claims = claims.peekable();
    claims.peek().is_some() && claims.all(|claim| is_so(claim))
}

/// Reports whether a claim that stays belongs to its pod, and otherwise only to sets and pods of these
/// names, earlier ones included.
fn is_ours_alone(claim: &Claim, pod: &Pod, set: &Set) -> bool {
    let mut owners = claim.owners.iter();
    let owned = owners.clone().any(|it| it.uid == pod.uid);
    owned && owners.all(|it| is_named_as(it, pod, set)) && !claim.terminating
}
