//! Claims: nothing that dooms a claim is sent without a live look at the set.

use kube_test_control_plane::route::Verb;

use super::Verdict;
use super::case::{Case, Write};
use crate::views::{Claim, Set};

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    if write.request.resource == "persistentvolumeclaims" {
        judge_claim(case, write, verdict);
    }
    let Some((ordinal, _)) = write.deleted_pod() else {
        return;
    };
    let set = write.view.set;
    if !set.range().contains(&ordinal) && set.deletes_claims_when_scaled() {
        judge_owned_before(case, write, ordinal, verdict);
        judge_doom(case, write, Doom::Scaled(ordinal), verdict);
    }
}

/// The cause of a claim's end.
#[derive(Clone, Copy)]
enum Doom {
    /// The end of this pod, as the set was scaled down.
    Scaled(u32),
    /// The end of the set.
    Deleted,
}

impl Doom {
    /// Reports whether a set's spec wants this.
    fn is_wanted_by(self, set: &Set) -> bool {
        match self {
            Self::Scaled(ordinal) => {
                set.deletes_claims_when_scaled() && !set.range().contains(&ordinal)
            }
            Self::Deleted => set.deletes_claims_with_set(),
        }
    }
}

/// V-1: claims are created, and their owners change; nothing else. V-3: claims of others are left
/// alone.
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
    let wanted = Claim::read(&request.json());
    let Some(processed) = request.processed else {
        return;
    };
    let Some(stored) = case.claim(&request.namespace, &request.name, processed.before) else {
        return;
    };
    let is_new = |uid: &str| !stored.owners.iter().any(|it| it.uid == uid);
    let is_foreign = |claim: &Claim| {
        let mut owners = claim.owners.iter();
        owners.any(|it| it.controller && it.uid != set.uid && it.kind != "Pod")
    };
    for owner in wanted.owners.iter().filter(|it| is_new(&it.uid)) {
        let doom = match owner.kind.as_str() {
            "Pod" => set.ordinal_of_claim(&request.name).map(Doom::Scaled),
            "StatefulSet" => Some(Doom::Deleted),
            _ => None,
        };
        if is_foreign(&wanted) {
            let message = format!("{}: another controller has the claim", write.named());
            verdict.broken("V-3", request.sent, message);
        }
        if let Some(doom) = doom {
            judge_doom(case, write, doom, verdict);
        }
    }
}

/// V-4: the claims of a condemned pod belong to it before it goes.
fn judge_owned_before(case: &Case<'_>, write: &Write<'_>, ordinal: u32, verdict: &mut Verdict) {
    let (set, request) = (write.view.set, write.request);
    let (Some(processed), Some((_, pod))) = (request.processed, write.deleted_pod()) else {
        return;
    };
    for template in &set.claims {
        let name = format!("{template}-{}-{ordinal}", set.name);
        let Some(claim) = case.claim(&request.namespace, &name, write.sync.seen.claims) else {
            continue;
        };
        let Some(stored) = case.claim(&request.namespace, &name, processed.before) else {
            continue;
        };
        // Another controller may have taken it since; the sync reads the claim before it writes.
        let mut owners = claim.owners.iter().chain(&stored.owners);
        let is_others = owners.any(|it| it.controller);
        let owned = stored.owners.iter().any(|it| it.uid == pod.uid);
        if stored.uid == claim.uid && !owned && !is_others && !claim.terminating {
            let message = format!("{}: claim {name} does not belong to it", write.named());
            verdict.broken("V-4", request.sent, message);
        }
    }
}

/// V-5: a read of the set, begun after the sync decided, showed that the spec wants the claim to
/// go.
fn judge_doom(case: &Case<'_>, write: &Write<'_>, doom: Doom, verdict: &mut Verdict) {
    let (request, sync) = (write.request, write.sync);
    let confirmed = write.earlier.iter().any(|it| {
        let is_look = it.verb == Some(Verb::Get) && it.resource == "statefulsets";
        let in_time = it.sent >= sync.at && it.answered.is_some_and(|at| at <= request.sent);
        let set = it.processed.and_then(|processed| {
            let set = case.history.sets.at(&sync.set, processed.before)?;
            (processed.code == 200 && it.status == Some(200)).then_some(set)
        });
        let wants = set.is_some_and(|set| set.uid == write.view.set.uid && doom.is_wanted_by(set));
        is_look && in_time && wants
    });
    verdict.doomed += 1;
    if !confirmed {
        let message = format!("{}: no live look at the set allowed it", write.named());
        verdict.broken("V-5", request.sent, message);
    }
    let Some(processed) = request.processed.filter(|it| it.code < 300) else {
        return;
    };
    let stored = case.history.sets.at(&sync.set, processed.before);
    let kept = stored.is_some_and(|set| !doom.is_wanted_by(set));
    verdict.outrun += usize::from(kept && confirmed);
}
