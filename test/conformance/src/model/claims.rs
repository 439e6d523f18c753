//! Claims: creation for pods, and ownership by set or pod according to the retention policy.

use std::rc::Rc;

use kube_apimachinery::schema::normalize;
use serde_json::Value;

use super::cluster::Kind;
use super::failure::Failure;
use super::object::{is_deleting, name, number, set_or_remove, uid};
use super::owners::{
    has_unexpected_controller, is_lost_with_an_owner, is_of_earlier_pod, is_of_pod, is_up_to_date,
    rewritten, without_owner,
};
use super::set::{is_created, ordinal, phase};
use super::sync::Sync;

/// Claims of the pod with their names; empty for a pod without a valid ordinal.
fn claims_of(sync: &Sync, pod: &Value) -> Vec<(String, Value)> {
    let set = &sync.set;
    let named = |template: &Value| (set.claim_name(template, ordinal(pod)), template.clone());
    set.claim_templates.iter().map(named).collect()
}

fn new_claim(sync: &Sync, template: &Value, name: &str) -> Value {
    let typed = normalize("PersistentVolumeClaim", template, sync.unknown(), "");
    let mut claim = typed.unwrap_or_else(|_| template.clone());
    claim["apiVersion"] = Value::from("v1");
    claim["kind"] = Value::from("PersistentVolumeClaim");
    let metadata = &mut claim["metadata"];
    metadata["name"] = Value::from(name);
    metadata["namespace"] = Value::from(sync.set.namespace.as_str());
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    labels.extend(sync.set.match_labels());
    set_or_remove(metadata, "labels", labels.is_empty(), labels.into());
    claim
}

/// Creates the pod's missing claims.
pub(super) fn create_claims(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (claim, template) in claims_of(sync, pod) {
        match sync.claims.get(&claim) {
            Some(cached) if is_deleting(cached) => {
                failures.push(Failure::new(format!("pvc {claim} is being deleted")));
            }
            Some(_) => {}
            None => {
                let created = sync
                    .api
                    .create(Kind::Claim, new_claim(sync, &template, &claim));
                claim_event(sync, &claim, pod, &created);
                let failed = format!("failed to create PVC {claim}");
                failures.extend(created.err().map(|failure| failure.while_doing(&failed)));
            }
        }
    }
    Failure::join(failures)
}

fn claim_event(sync: &mut Sync, claim: &str, pod: &Value, result: &Result<(), Failure>) {
    let (pod, set) = (name(pod), sync.set.name.clone());
    match result {
        Ok(()) => {
            let text = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
            sync.event(Ok(()), "Create", &text);
        }
        Err(failure) if failure.is_already_exists() => {}
        Err(failure) => {
            let text = format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed");
            sync.event(Err(failure.text()), "Create", &text);
        }
    }
}

/// Creates missing claims of a pending pod, and updates the owners of all.
pub(super) fn create_missing_claims(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    create_claims(sync, pod)?;
    let applied = apply_retention(sync, pod);
    if let Err(failure) = &applied {
        sync.pod_event("Update", name(pod), Err(failure));
    }
    applied
}

/// Returns true if the owners of all the pod's claims match the policy.
pub(super) fn retention_matches(sync: &Sync, pod: &Value) -> bool {
    claims_of(sync, pod)
        .iter()
        .filter_map(|(claim, _)| sync.claims.get(claim))
        .all(|claim| may_keep_owners(sync, claim, pod))
}

/// Returns true if the claim's owners need no write.
fn may_keep_owners(sync: &Sync, claim: &Value, pod: &Value) -> bool {
    let is_lost = || is_lost_with_an_owner(claim, &sync.set, pod);
    is_up_to_date(claim, &sync.set, pod) && !(sync.rules.release_stale_owners && is_lost())
}

/// Returns true if a claim will be deleted with an earlier pod of the same name.
pub(super) fn has_stale_claim(sync: &Sync, pod: &Value) -> bool {
    sync.set.when_scaled != "Retain"
        && claims_of(sync, pod)
            .iter()
            .filter_map(|(claim, _)| sync.claims.get(claim))
            .any(|claim| is_of_earlier_pod(claim, pod))
}

/// Sets the owners of the pod's claims according to the policy.
pub(super) fn apply_retention(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let set = Rc::clone(&sync.set);
    for (claim, _) in claims_of(sync, pod) {
        let Some(cached) = sync.claims.get(&claim).cloned() else {
            continue;
        };
        if has_unexpected_controller(&cached, &set, pod) {
            sync.events.push(format!(
                "Warning ConflictingController PersistentVolumeClaim {claim} has a \
                 conflicting OwnerReference that acts as a manging controller, the retention \
                 policy is ignored for this claim"
            ));
        }
        if may_keep_owners(sync, &cached, pod) {
            continue;
        }
        let failed = format!("could not update claim {claim} for delete policy ownerRefs");
        let looked = sync.api.look(Kind::Claim, &claim);
        looked.map_err(|failure| failure.while_doing(&failed))?;
        let (changed, adds_owner) = rewritten(&cached, &set, pod);
        if adds_owner {
            check_live_set(
                sync,
                &format!("will not add an owner that would cause the deletion of claim {claim}"),
            )?;
        }
        let put = sync.api.put(Kind::Claim, "", changed);
        put.map_err(|failure| failure.while_doing(&failed))?;
    }
    Ok(())
}

/// Removes the pod from the owners of its claims. A claim may have an owner that the cache lacks,
/// so the claims of an ended pod, which is deleted next, are read in the API.
pub(super) fn take_claims_from(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    let is_deleted = matches!(phase(pod), "Failed" | "Succeeded");
    take_claims(sync, pod, |is_owner| is_owner || is_deleted)
}

/// Does the same before the deletion of another pod, for the owners that the cache lacks.
pub(super) fn take_unseen_claims_from(sync: &mut Sync, pod: &Value) -> Result<(), Failure> {
    take_claims(sync, pod, |is_owner| !is_owner)
}

/// Keeps retained claims from being deleted with their pods. Runs when the replicas stop the
/// sync.
pub(super) fn release_kept_claims(
    sync: &mut Sync,
    waiting: &[Value],
    condemned: &[Value],
) -> Result<(), Failure> {
    let condemned = match sync.set.when_scaled.as_str() {
        "Delete" => &[],
        _ => condemned,
    };
    let mut failures = Vec::new();
    for pod in waiting
        .iter()
        .chain(condemned)
        .filter(|pod| is_created(pod))
    {
        failures.extend(take_claims_from(sync, pod).err());
    }
    Failure::join(failures)
}

fn take_claims(sync: &mut Sync, pod: &Value, reads: impl Fn(bool) -> bool) -> Result<(), Failure> {
    if !sync.rules.take_claims_from_wanted {
        return Ok(());
    }
    for (claim, _) in claims_of(sync, pod) {
        let cached = sync.claims.get(&claim).cloned();
        if reads(cached.as_ref().is_some_and(|it| is_of_pod(it, pod))) {
            take_claim(sync, &claim, cached.as_ref(), pod)?;
        }
    }
    Ok(())
}

/// The fake API returns the claim as it was before the sync.
fn take_claim(
    sync: &mut Sync,
    claim: &str,
    cached: Option<&Value>,
    pod: &Value,
) -> Result<(), Failure> {
    let looked = match sync.api.look(Kind::Claim, claim) {
        Err(failure) if failure.is_not_found() => return Ok(()),
        looked => looked,
    };
    let set = Rc::clone(&sync.set);
    let stale_of = sync.rules.release_stale_owners.then_some(&*set);
    let changed = cached.and_then(|cached| without_owner(cached, pod, stale_of));
    let put = looked.and_then(|()| match changed {
        Some(changed) => sync.api.put(Kind::Claim, "", changed),
        None => Ok(()),
    });
    put.map_err(|failure| {
        let failed = format!("could not update claim {claim} for delete policy ownerRefs");
        let failure = failure.while_doing(&failed);
        sync.pod_event("Update", name(pod), Err(&failure));
        failure
    })
}

/// Checks that the live set is the one that the sync is based on.
pub(super) fn check_live_set(sync: &Sync, refusal: &str) -> Result<(), Failure> {
    if !sync.rules.live_set_before_dooming {
        return Ok(());
    }
    compare_live_set(sync).map_err(|reason| Failure::new(format!("{refusal}: {reason}")))
}

fn compare_live_set(sync: &Sync) -> Result<(), String> {
    let set = &sync.set;
    let key = format!("{}/{}", set.namespace, set.name);
    let looked = sync.api.look(Kind::Set, &set.name);
    let live = looked.and_then(|()| sync.api.peek(Kind::Set, &set.name));
    let live =
        live.map_err(|failure| format!("can't read StatefulSet {key}: {}", failure.text()))?;
    let (live_uid, wanted) = (uid(live), &set.uid);
    if live_uid != wanted {
        return Err(format!(
            "StatefulSet {key} was recreated: uid {live_uid} instead of {wanted}"
        ));
    }
    if is_deleting(live) {
        return Err(format!("StatefulSet {key} is being deleted"));
    }
    let generation = |set: &Value| number(set, "/metadata/generation");
    let (got, wanted) = (generation(live), generation(&set.value));
    if got != wanted {
        return Err(format!(
            "StatefulSet {key} changed: generation {got} instead of {wanted}"
        ));
    }
    Ok(())
}
