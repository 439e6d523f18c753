//! Claims that go with the change, and the reason for each.

use std::collections::{BTreeMap, BTreeSet};

use super::situation::Situation;
use crate::model::{Claim, Owner, Pod, Set};

/// The claims and pods at the end of the plan.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Uid of each claim by its name, and whether it is being deleted.
    pub(super) claims: BTreeMap<String, (String, bool)>,
    /// Uids of the pods.
    pub(super) pods: BTreeSet<String>,
}

/// The end of an existing claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Its name.
    pub(super) claim: String,
    /// The reason, as a clause after "would be deleted: ".
    pub(super) reason: String,
    /// True if a new, empty claim gets its name.
    pub(super) is_replaced: bool,
}

/// A claim that is being deleted and survives the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Risk {
    pub(super) claim: String,
    /// The objects that still keep it, in words.
    pub(super) holder: Option<String>,
}

/// The desired state after the change, as far as it decides about claims.
pub(super) struct Desired<'a> {
    pub(super) set: &'a Set,
    /// True if kube-controller-manager manages the set: it deletes some pods before it frees their
    /// claims, and leaves claims with stale owners alone.
    pub(super) is_built_in: bool,
}

/// The claims that don't survive the plan.
pub(super) fn losses(
    situation: &Situation<'_>,
    desired: &Desired<'_>,
    ending: &Ending,
) -> Vec<Loss> {
    let claims = situation.snapshot.claims();
    let lost = claims.filter_map(|claim| {
        let name = &claim.metadata.name;
        let reason = reason(situation, desired, ending, claim)?;
        let now = ending.claims.get(name);
        Some(Loss {
            claim: name.clone(),
            reason,
            is_replaced: now.is_some_and(|(uid, _)| *uid != claim.metadata.uid),
        })
    });
    lost.collect()
}

/// The claims of a set or a namespace that is being deleted, for which the plan makes no step.
pub(super) fn losses_of_ending(situation: &Situation<'_>) -> Vec<Loss> {
    let claims = situation.snapshot.claims();
    let lost = claims.filter_map(|claim| {
        let reason = if situation.namespace_ends {
            format!("namespace {} is being deleted", situation.namespace)
        } else {
            reason_with_the_set(situation, claim)?
        };
        Some(Loss {
            claim: claim.metadata.name.clone(),
            reason,
            is_replaced: false,
        })
    });
    lost.collect()
}

/// The claims that are being deleted, but survive the plan.
pub(super) fn risks(situation: &Situation<'_>, losses: &[Loss]) -> Vec<Risk> {
    let claims = situation.snapshot.claims();
    let deleted = claims.filter(|claim| claim.metadata.deletion_timestamp.is_some());
    let deleted = deleted.filter(|claim| {
        let name = &claim.metadata.name;
        losses.iter().all(|loss| loss.claim != *name)
    });
    deleted
        .map(|claim| Risk {
            claim: claim.metadata.name.clone(),
            holder: holder(situation, claim),
        })
        .collect()
}

/// The objects that keep a claim which is being deleted.
fn holder(situation: &Situation<'_>, claim: &Claim) -> Option<String> {
    let users = users(situation, claim);
    let pods = match users.as_slice() {
        [] => None,
        [only] => Some(format!("pod {only}")),
        users => Some(format!("pods {}", users.join(", "))),
    };
    let foreign: Vec<&str> = claim.foreign_finalizers().collect();
    let foreign = (!foreign.is_empty()).then(|| format!("finalizer {}", foreign.join(", ")));
    let all: Vec<String> = pods.into_iter().chain(foreign).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// The reason for the end of a claim that is already being deleted.
fn already_deleted(situation: &Situation<'_>, claim: &Claim) -> String {
    match holder(situation, claim) {
        Some(holder) => format!("it is already being deleted, and only {holder} keeps it"),
        None => "it is already being deleted".to_owned(),
    }
}

/// Names of the pods that use a claim.
fn users<'a>(situation: &'a Situation<'_>, claim: &'a Claim) -> Vec<&'a str> {
    let pods = situation.snapshot.pods_with(&claim.metadata.name);
    pods.map(|pod| pod.metadata.name.as_str()).collect()
}

fn reason(
    situation: &Situation<'_>,
    desired: &Desired<'_>,
    ending: &Ending,
    claim: &Claim,
) -> Option<String> {
    let metadata = &claim.metadata;
    let now = ending.claims.get(&metadata.name);
    let is_there = now.is_some_and(|(uid, _)| *uid == metadata.uid);
    let was_deleted = metadata.deletion_timestamp.is_some();
    if is_there && was_deleted {
        return None;
    }
    if is_there && now.is_some_and(|(_, is_deleted)| !is_deleted) {
        return desired
            .is_built_in
            .then(|| reason_under_built_in(situation, desired.set, ending, claim))?;
    }
    if was_deleted {
        return Some(already_deleted(situation, claim));
    }
    let owners = &metadata.owner_references;
    let exists = |owner: &&Owner| exists_now(situation, owner);
    if !owners.is_empty() && !owners.iter().any(|owner| exists(&owner)) {
        return Some(collected(owners));
    }
    let ordinal = claim_ordinal(desired.set, &metadata.name);
    let is_condemned = ordinal.is_some_and(|ordinal| !desired.set.ordinals().contains(&ordinal));
    if is_condemned && desired.set.deletes_scaled_claims() {
        return Some("whenScaled: Delete removes it with its pod".to_owned());
    }
    let ending: Vec<String> = owners.iter().filter(exists).map(named).collect();
    Some(format!(
        "its owner {} ends, and the garbage collector follows",
        ending.join(", ")
    ))
}

/// The reason if kube-controller-manager would leave the claim to the garbage collector, although
/// this controller frees it first.
fn reason_under_built_in(
    situation: &Situation<'_>,
    set: &Set,
    ending: &Ending,
    claim: &Claim,
) -> Option<String> {
    let owners = &claim.metadata.owner_references;
    if owners.is_empty() {
        return None;
    }
    let ordinal = claim_ordinal(set, &claim.metadata.name);
    let pod = ordinal.map(|ordinal| format!("{}-{ordinal}", set.metadata.name));
    let pod = pod.unwrap_or_default();
    let live = situation.snapshot.pod(&pod);
    let is_stale = is_stale(owners, "StatefulSet", &set.metadata.name, &set.metadata.uid)
        || is_stale(owners, "Pod", &pod, live.map_or("", |it| &it.metadata.uid));
    let is_freed_first = !is_stale && !live.is_some_and(Pod::is_finished) && !set.is_recreate();
    let survives = |owner: &Owner| {
        let set = situation
            .set()
            .is_some_and(|set| set.metadata.uid == owner.uid);
        let foreign = situation.owners.get(&owner.uid).copied();
        set || ending.pods.contains(&owner.uid) || foreign.unwrap_or_default()
    };
    if is_freed_first || owners.iter().any(survives) {
        return None;
    }
    Some(format!(
        "kube-controller-manager, which manages the set, leaves its owners ({}) in place, and the \
         garbage collector deletes it with the last of them",
        owners.iter().map(named).collect::<Vec<_>>().join(", ")
    ))
}

/// The reason if a claim goes with its set, which is being deleted.
fn reason_with_the_set(situation: &Situation<'_>, claim: &Claim) -> Option<String> {
    let set = situation.set()?;
    let metadata = &claim.metadata;
    let is_orphaning = set.metadata.finalizers.iter().any(|it| it == "orphan");
    let users = users(situation, claim);
    let loses_users = users.is_empty() || !is_orphaning;
    if metadata.deletion_timestamp.is_some() && loses_users {
        return Some(already_deleted(situation, claim));
    }
    let goes = |owner: &Owner| {
        let is_set = owner.uid == set.metadata.uid;
        let mut pods = situation.snapshot.pods_of(set);
        let is_pod = pods.any(|pod| pod.metadata.uid == owner.uid);
        if is_set || is_pod {
            !is_orphaning
        } else {
            !exists_now(situation, owner)
        }
    };
    let owners = &metadata.owner_references;
    if owners.is_empty() || !owners.iter().all(goes) {
        return None;
    }
    Some(format!(
        "StatefulSet {} is being deleted, and owns it (whenDeleted: Delete)",
        set.metadata.name
    ))
}

/// Reports whether the first reference to an object of this kind and name has another uid.
fn is_stale(owners: &[Owner], kind: &str, name: &str, uid: &str) -> bool {
    let mut found = owners.iter();
    let found = found.find(|owner| owner.kind == kind && owner.name == name);
    found.is_some_and(|owner| owner.uid != uid)
}

/// Reports whether an owner exists before the change.
fn exists_now(situation: &Situation<'_>, owner: &Owner) -> bool {
    let set = situation.set().map(|set| &set.metadata);
    let pods = situation.snapshot.pods().map(|pod| &pod.metadata);
    let foreign = situation.owners.get(&owner.uid).copied();
    set.into_iter().chain(pods).any(|it| it.uid == owner.uid) || foreign.unwrap_or_default()
}

fn collected(owners: &[Owner]) -> String {
    let names: Vec<String> = owners.iter().map(named).collect();
    format!(
        "its owner {} no longer exists, so the garbage collector deletes it",
        names.join(", ")
    )
}

fn named(owner: &Owner) -> String {
    format!("{} {} (uid {})", owner.kind, owner.name, owner.uid)
}

/// The ordinal in the name of one of the set's claims.
fn claim_ordinal(set: &Set, claim: &str) -> Option<i64> {
    let templates = set.spec.volume_claim_templates.iter();
    let mut pods = templates.filter_map(|template| {
        let rest = claim.strip_prefix(template.metadata.name.as_str())?;
        rest.strip_prefix('-')
    });
    pods.find_map(|pod| set.ordinal(pod))
}
