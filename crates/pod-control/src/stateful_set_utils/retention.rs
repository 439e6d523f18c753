//! The retention policy as rules over a claim's owner references.

use kube_apimachinery::json::{edit_list, object_member};
use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::{Value, json};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::{
    API_VERSION, ClaimRetentionPolicyType, KIND, StatefulSet,
};

use super::slot::PodSlot;

#[cfg(test)]
mod tests;

/// A possible owner of a claim: the set or the pod.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl<'a> Owner<'a> {
    fn set(set: &'a StatefulSet) -> Self {
        Self {
            api_version: API_VERSION,
            kind: KIND,
            name: set.name(),
            uid: set.uid(),
        }
    }

    pub(crate) fn pod(pod: &'a PodSlot) -> Self {
        Self {
            api_version: "v1",
            kind: "Pod",
            name: pod.name(),
            uid: pod.uid(),
        }
    }

    /// True if the reference names this owner; ignores the uid.
    ///
    /// Upstream: `matchesRef`.
    pub(crate) fn matches_ref(self, reference: &OwnerReference) -> bool {
        *reference.api_version == *self.api_version
            && *reference.kind == *self.kind
            && *reference.name == *self.name
    }

    /// True if the claim has a reference with this owner's uid.
    ///
    /// Upstream: `hasOwnerRef`.
    pub(crate) fn has_owner_ref(self, claim: &Claim) -> bool {
        claim
            .owner_references
            .iter()
            .any(|reference| *reference.uid == *self.uid)
    }

    /// True if an earlier object of this name owns the claim, so that the garbage collector will
    /// delete it.
    ///
    /// Upstream: `hasStaleOwnerRef`.
    pub(crate) fn has_stale_owner_ref(self, claim: &Claim) -> bool {
        claim
            .owner_references
            .iter()
            .find(|reference| self.matches_ref(reference))
            .is_some_and(|reference| *reference.uid != *self.uid)
    }

    fn reference(self) -> OwnerReference {
        OwnerReference::new_controller(self.api_version, self.kind, self.name, self.uid)
    }
}

/// Returns the owner that the policy wants for the pod's claims, if any. An unknown policy retains
/// them.
fn desired_owner<'a>(set: &'a StatefulSet, pod: &'a PodSlot) -> Option<Owner<'a>> {
    use ClaimRetentionPolicyType::{Delete, Retain};
    let policy = set.spec.claim_retention_policy;
    let is_condemned = pod.ordinal().index_in(set).is_none();
    match (policy.when_scaled, policy.when_deleted) {
        (Delete, Retain | Delete) if is_condemned => Some(Owner::pod(pod)),
        (Retain | Delete, Delete) => Some(Owner::set(set)),
        _ => None,
    }
}

/// True if a policy value is unknown to this version.
pub(crate) fn is_policy_unknown(set: &StatefulSet) -> bool {
    let policy = set.spec.claim_retention_policy;
    [policy.when_scaled, policy.when_deleted].contains(&ClaimRetentionPolicyType::Other)
}

/// True if something other than the set and the pod controls the claim, or an earlier object of
/// either name owns it. Always false if both policies retain.
///
/// Upstream: `hasUnexpectedController`.
pub fn has_unexpected_controller(claim: &Claim, set: &StatefulSet, pod: &PodSlot) -> bool {
    use ClaimRetentionPolicyType::Retain;
    let policy = set.spec.claim_retention_policy;
    if policy.when_scaled == Retain && policy.when_deleted == Retain {
        return false;
    }
    let (set, pod) = (Owner::set(set), Owner::pod(pod));
    claim.owner_references.iter().any(|reference| {
        if set.matches_ref(reference) {
            *reference.uid != *set.uid
        } else if pod.matches_ref(reference) {
            *reference.uid != *pod.uid
        } else {
            reference.is_controller()
        }
    })
}

/// True if the set or the pod owns the claim without controlling it, as earlier versions left it.
///
/// Upstream: `hasNonControllerOwner`.
pub fn has_non_controller_owner(claim: &Claim, set: &StatefulSet, pod: &PodSlot) -> bool {
    claim.owner_references.iter().any(|reference| {
        let ours = *reference.uid == *set.uid() || *reference.uid == *pod.uid();
        ours && !reference.is_controller()
    })
}

/// True if the claim has the owners that the policy wants, or if its owners must not change.
///
/// Upstream: `isClaimOwnerUpToDate`.
pub fn is_claim_owner_up_to_date(claim: &Claim, set: &StatefulSet, pod: &PodSlot) -> bool {
    let owners = [Owner::set(set), Owner::pod(pod)];
    if owners.iter().any(|owner| owner.has_stale_owner_ref(claim)) {
        return true;
    }
    if has_unexpected_controller(claim, set, pod) {
        return !owners.iter().any(|owner| owner.has_owner_ref(claim));
    }
    let desired = desired_owner(set, pod);
    let is_right = |owner: &Owner<'_>| owner.has_owner_ref(claim) == (desired == Some(*owner));
    !has_non_controller_owner(claim, set, pod) && owners.iter().all(is_right)
}

/// True if the claim may keep its owners: it has those that the policy wants, or they must not change.
///
/// Differs from [`is_claim_owner_up_to_date`] for a claim with a stale reference next to the set or the
/// pod against the policy: the claim would be deleted with that owner although the set keeps it.
pub(crate) fn may_keep_owners(claim: &Claim, set: &StatefulSet, pod: &PodSlot) -> bool {
    // Most claims have no owner, and then nothing needs to be compared.
    if claim.owner_references.is_empty() {
        return desired_owner(set, pod).is_none();
    }
    let owners = [Owner::set(set), Owner::pod(pod)];
    let desired = desired_owner(set, pod);
    let is_unwanted = |owner: &Owner<'_>| desired != Some(*owner) && owner.has_owner_ref(claim);
    let is_stale = |owner: &Owner<'_>| owner.has_stale_owner_ref(claim);
    let loses_claim = owners.iter().any(is_stale) && owners.iter().any(is_unwanted);
    !loses_claim && is_claim_owner_up_to_date(claim, set, pod)
}

/// Updates the owners in a claim's JSON: keeps owners of other kinds or names, removes every
/// reference to the set's or the pod's name, and appends the desired owner. Returns true if it
/// appended one, with which the claim will be deleted.
///
/// Upstream: `updateClaimOwnerRefForSetAndPod`.
pub(crate) fn update_claim_owner_ref_for_set_and_pod(
    claim: &mut Live<Claim>,
    set: &StatefulSet,
    pod: &PodSlot,
) -> bool {
    let is_unexpected = has_unexpected_controller(&claim.object, set, pod);
    let mut desired = desired_owner(set, pod).filter(|_| !is_unexpected);
    edit_owner_refs(claim, |references| {
        references.retain(|reference| !names_ours(reference, set, pod));
        desired = desired.filter(|owner| !references.iter().any(|r| r["uid"] == *owner.uid));
        references.extend(desired.map(|owner| json!(owner.reference())));
    });
    desired.is_some()
}

/// Removes the pod from the owners in a claim's JSON, and the references to earlier sets and pods of
/// these names: if only those were left, the garbage collector would delete the claim.
///
/// Upstream: `removeRefs`, which matches by name.
pub(crate) fn remove_pod_refs(claim: &mut Live<Claim>, set: &StatefulSet, pod: &PodSlot) {
    let is_removed =
        |uid: &Value, is_ours: bool| *uid == *pod.uid() || is_ours && *uid != *set.uid();
    edit_owner_refs(claim, |references| {
        references.retain(|it| !is_removed(&it["uid"], names_ours(it, set, pod)));
    });
}

/// True if a reference names the set or the pod, with any uid, or can't be read.
fn names_ours(reference: &Value, set: &StatefulSet, pod: &PodSlot) -> bool {
    let owners = [Owner::set(set), Owner::pod(pod)];
    serde_json::from_value::<OwnerReference>(reference.clone())
        .map_or(true, |r| owners.iter().any(|owner| owner.matches_ref(&r)))
}

fn edit_owner_refs(claim: &mut Live<Claim>, edit: impl FnOnce(&mut Vec<Value>)) {
    let metadata = object_member(&mut claim.json, "metadata");
    edit_list(metadata, "ownerReferences", edit);
}
