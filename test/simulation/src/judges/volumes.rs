//! Claims: no write lets a claim be deleted without a live read of the set.

use std::time::Duration;

use kube_test_control_plane::route::Verb;

use super::{Case, Verdict, Write};
use crate::record::{Request, SetKey};
use crate::views::{Claim, Owner, Pod, Set};
use crate::world::FORMER;

/// Number of writes that one live read of the set allows: concurrent calls share it.
const SHARED_MAX: usize = 10;

/// Time in which an instance sends a request that nothing delays.
const AT_ONCE: Duration = Duration::from_millis(1);

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.request.resource == "persistentvolumeclaims" {
        judge_claim(case, write, verdict);
    }
    let Some((ordinal, _)) = write.deleted_pod() else {
        return;
    };
    let set = write.view.set;
    let goes_with_pod = set.deletes_claims_when_scaled() && !set.claims.is_empty();
    if goes_with_pod && !set.range().contains(&ordinal) {
        judge_owned_before(case, write, ordinal, verdict);
        judge_claim_deletion(case, write, ClaimDeletionCause::Scaled(ordinal), verdict);
    } else {
        judge_kept(case, write, ordinal, verdict);
    }
}

/// Cause of a claim's deletion.
#[derive(Clone, Copy)]
pub(super) enum ClaimDeletionCause {
    /// The end of this pod, as the set was scaled down.
    Scaled(u32),
    /// The end of the set.
    Deleted,
}

impl ClaimDeletionCause {
    /// Returns the cause that an owner of a claim stands for; none if it is another controller's.
    pub(super) fn of(owner: &Owner, ordinal: u32) -> Option<Self> {
        match owner.kind.as_str() {
            "Pod" => Some(Self::Scaled(ordinal)),
            "StatefulSet" => Some(Self::Deleted),
            _ => None,
        }
    }

    /// Reports whether a set's spec wants this.
    pub(super) fn is_wanted_by(self, set: &Set) -> bool {
        match self {
            Self::Scaled(ordinal) => !set.keeps_claims_of(ordinal),
            Self::Deleted => set.deletes_claims_with_set(),
        }
    }
}

/// V-1: claims are created, and their owners change; nothing else. V-3: owners of others stay, and
/// a claim that belongs to another gets none.
fn judge_claim(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let (request, set) = (write.request, write.view.set);
    if request.verb == Some(Verb::Create) {
        return;
    }
    if !write.changes("persistentvolumeclaims") {
        let message = format!("{}: claims are not deleted by a controller", write.named());
        verdict.broken("V-1", request.sent, message);
        return;
    }
    let body = request.json();
    let wanted = Claim::read(&body);
    let version = write.text("/metadata/resourceVersion");
    let version = version.and_then(|version| version.parse().ok());
    let base = version.and_then(|version| case.claim(&request.namespace, &request.name, version));
    let (Some(base), Some(ordinal)) = (base, set.ordinal_of_claim(&request.name)) else {
        return;
    };
    let pod = format!("{}-{ordinal}", set.name);
    let of_set = |it: &Owner| it.kind == "StatefulSet" && it.name == set.name;
    let of_pod = |it: &Owner| it.kind == "Pod" && it.name == pod;
    let is_foreign = |it: &Owner| !of_set(it) && !of_pod(it);
    let foreign = |claim: &Claim| -> Vec<Owner> {
        claim
            .owners
            .iter()
            .filter(|it| is_foreign(it))
            .cloned()
            .collect()
    };
    if foreign(base) != foreign(&wanted) {
        let message = format!("{}: an owner of others changes", write.named());
        verdict.broken("V-3", request.sent, message);
    }
    let added: Vec<&Owner> = wanted
        .owners
        .iter()
        .filter(|it| !base.owners.iter().any(|old| old.uid == it.uid))
        .collect();
    if added.is_empty() {
        judge_leftover(case, write, &wanted, verdict);
    }
    let is_stale = |it: &Owner| of_set(it) && it.uid != set.uid;
    let is_others = base
        .owners
        .iter()
        .any(|it| is_foreign(it) && it.controller || is_stale(it));
    if is_others && !added.is_empty() {
        let message = format!("{}: another controller has the claim", write.named());
        verdict.broken("V-3", request.sent, message);
    }
    for owner in added {
        let known = if owner.kind == "StatefulSet" {
            owner.uid == set.uid
        } else {
            let key = (request.namespace.clone(), pod.clone());
            let seen = write.seen.pods;
            let mut pods = case.history.pods.during(&key, seen, write.newest);
            pods.any(|it| it.uid == owner.uid && it.name == owner.name)
        };
        let right = owner.controller && known;
        match ClaimDeletionCause::of(owner, ordinal) {
            Some(cause) if right => judge_claim_deletion(case, write, cause, verdict),
            _ => {
                let message = format!("{}: a wrong owner {owner:?}", write.named());
                verdict.broken("V-3", request.sent, message);
            }
        }
    }
}

/// V-5: a write that only removes owners leaves no claim with owners alone that are gone, if it had
/// another one before. Then the garbage collector would delete it at once.
fn judge_leftover(case: &Case<'_>, write: &Write<'_>, wanted: &Claim, verdict: &mut Verdict) {
    let request = write.request;
    let Some(processed) = request.processed.filter(|it| it.code < 300) else {
        return;
    };
    let before = processed.before;
    let Some(stored) = case.claim(&request.namespace, &request.name, before) else {
        return;
    };
    // Owners of other kinds exist in all plans.
    let exists = |owner: &&Owner| {
        let key = (request.namespace.clone(), owner.name.clone());
        match owner.kind.as_str() {
            "StatefulSet" => {
                let found = case.history.sets.at(&key, before);
                found.is_some_and(|it| it.uid == owner.uid)
            }
            "Pod" => {
                let found = case.history.pods.at(&key, before);
                found.is_some_and(|it| it.uid == owner.uid)
            }
            _ => true,
        }
    };
    let had = stored.owners.iter().find(exists);
    let is_left = !wanted.owners.is_empty() && !wanted.owners.iter().any(|it| exists(&it));
    if let Some(had) = had.filter(|_| is_left && !stored.terminating) {
        let message = format!(
            "{}: only owners that are gone stay, without {had:?}",
            write.named()
        );
        verdict.broken("V-5", request.sent, message);
    }
}

/// Reports whether another client than an instance took a claim from a pod between two versions.
fn is_taken_by_another(
    case: &Case<'_>,
    key: &SetKey,
    (from, until): (u64, u64),
    pod: &Pod,
) -> bool {
    let owns = |claim: &Claim| claim.owners.iter().any(|it| it.uid == pod.uid);
    let mut owned = case.history.claims.at(key, from).is_some_and(|it| owns(it));
    let mut taken = case.history.claims.changes(key, from, until);
    taken.any(|(version, claim)| {
        let had = std::mem::replace(&mut owned, claim.is_some_and(|it| owns(it)));
        let by_instance = case.commit(version).is_none_or(|it| it.request.is_some());
        had && !owned && !by_instance
    })
}

/// V-4: the claims of a condemned pod belong to it before it goes.
fn judge_owned_before(case: &Case<'_>, write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let (set, request) = (write.view.set, write.request);
    let (Some(processed), Some((_, pod))) = (request.processed, write.deleted_pod()) else {
        return;
    };
    // The cache may show a pod that is gone.
    if processed.code == 404 {
        return;
    }
    for name in set.claims_of(ordinal) {
        let Some(claim) = case.claim(&request.namespace, &name, write.seen.claims) else {
            continue;
        };
        let Some(stored) = case.claim(&request.namespace, &name, processed.before) else {
            continue;
        };
        // Another controller may have taken it since; the sync reads the claim before it writes. A claim
        // with an earlier set or pod as its owner is left alone.
        let mut owners = claim.owners.iter().chain(&stored.owners);
        let is_others = owners.any(|it| it.controller || it.uid.starts_with(FORMER));
        let seen = (write.seen.claims, processed.before);
        let key = (request.namespace.clone(), name.clone());
        let owned = stored.owners.iter().any(|it| it.uid == pod.uid)
            || is_taken_by_another(case, &key, seen, pod);
        if stored.uid == claim.uid && !owned && !is_others && !claim.terminating {
            let message = format!("{}: claim {name} does not belong to it", write.named());
            verdict.broken("V-4", request.sent, message);
        }
    }
}

/// V-5: no pod is deleted while a claim that the set keeps belongs to it. All that was stored
/// between the start of the sync and the deletion counts, not the caches: the promise holds however
/// old these are.
fn judge_kept(case: &Case<'_>, write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let (set, request, sync) = (write.view.set, write.request, write.sync);
    let uid = write.deleted_uid().unwrap_or_default();
    let began = case.revision_at(sync.at);
    let mut sets = case
        .history
        .sets
        .during(&sync.set, sync.seen.sets, write.newest);
    if !sets.all(|set| set.keeps_claims_of(ordinal)) {
        return;
    }
    for name in set.claims_of(ordinal) {
        let key = (request.namespace.clone(), name);
        let mut claims = case
            .history
            .claims
            .during(&key, began, write.newest)
            .peekable();
        let belongs = |claim: &Claim| {
            let mut owners = claim.owners.iter();
            !claim.terminating && owners.any(|it| it.uid == uid)
        };
        if claims.peek().is_some() && claims.all(|claim| belongs(claim)) {
            let message = format!("{}: claim {} belongs to it", write.named(), key.1);
            verdict.broken("V-5", request.sent, message);
        }
    }
}

/// V-5: a read of the set, begun after the sync decided, showed that the spec wants the claim to
/// go, and the write followed it at once.
fn judge_claim_deletion(
    case: &Case<'_>,
    write: &Write<'_>,
    cause: ClaimDeletionCause,
    verdict: &mut Verdict,
) {
    let (request, sync) = (write.request, write.sync);
    let decided = decided(case, write);
    let looks = write.earlier.iter().filter(|it| {
        let is_look = it.verb == Some(Verb::Get) && it.resource == "statefulsets";
        let in_time = it.sent >= decided && it.answered.is_some_and(|at| at <= request.sent);
        is_look && in_time
    });
    let allows = |it: &Request| {
        let set = it.processed.and_then(|processed| {
            let set = case.history.sets.at(&sync.set, processed.before)?;
            (processed.code == 200 && it.status == Some(200)).then_some(set)
        });
        let known = write.view.set;
        set.is_some_and(|set| set.uid == known.uid && !set.terminating && cause.is_wanted_by(set))
    };
    verdict.doomed += 1;
    let look = looks.max_by_key(|it| it.answered).filter(|it| allows(it));
    let Some(look) = look else {
        let message = format!("{}: no live read of the set allowed it", write.named());
        verdict.broken("V-5", request.sent, message);
        return;
    };
    let looked = look.answered.unwrap_or_default();
    let sharing = write.earlier.iter().filter(|it| {
        let deletes = it.verb == Some(Verb::Delete) && it.resource == "pods";
        let claims = it.verb == Some(Verb::Update) && it.resource == "persistentvolumeclaims";
        it.sent >= looked && (deletes || claims)
    });
    let (shared, waited) = (sharing.count() + 1, request.sent.saturating_sub(looked));
    // A process that stops goes on where it was: the look was the last thing that it did.
    let stopped = case.stopped(sync.process, looked, request.sent);
    if shared > SHARED_MAX || waited.saturating_sub(stopped) > AT_ONCE {
        let message = format!(
            "{}: {waited:?} and {shared} writes after the look",
            write.named()
        );
        verdict.broken("V-5", request.sent, message);
    }
    let Some(processed) = request.processed.filter(|it| it.code < 300) else {
        return;
    };
    let window = processed
        .at
        .saturating_sub(look.processed.map_or(processed.at, |it| it.at));
    verdict.windows.push(window);
    let stored = case.history.sets.at(&sync.set, processed.before);
    let kept = stored.is_some_and(|set| !cause.is_wanted_by(set));
    verdict.outrun += usize::from(kept);
}

/// Returns the time at which the sync had decided what to do with this object: it had claimed its
/// pods and revisions, and read or written the claims that the write is about.
fn decided(case: &Case<'_>, write: &Write<'_>) -> Duration {
    let request = write.request;
    let is_alone = case.plan.settings.fence.is_none();
    let claims: Vec<String> = match write.ordinal() {
        Some(ordinal) => write.view.set.claims_of(ordinal).collect(),
        None => vec![request.name.clone()],
    };
    let before = write
        .earlier
        .iter()
        .filter(|it| match it.resource.as_str() {
            "pods" => it.verb == Some(Verb::Patch) && !it.resizes(),
            // Behind a fence also the watch for other writers reads revisions.
            "controllerrevisions" => it.verb != Some(Verb::Get) || is_alone,
            "persistentvolumeclaims" => claims.contains(&it.name),
            _ => false,
        });
    let times = before.map(|it| it.answered.unwrap_or(it.sent));
    times.max().unwrap_or_default().max(write.sync.at)
}
