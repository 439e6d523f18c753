//! The retention policy as rules over a claim's owner references.

use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::{Value, json};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::stateful_set::{
    API_VERSION, ClaimRetentionPolicyType, KIND, StatefulSet,
};

use super::identity::object_member;
use super::slot::PodSlot;

#[cfg(test)]
mod tests;

const POD_KIND: &str = "Pod";
const POD_API_VERSION: &str = "v1";

/// A possible owner of a claim: the set or the pod.
#[derive(Clone, Copy)]
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
            api_version: POD_API_VERSION,
            kind: POD_KIND,
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

/// The owner that the policy wants for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedOwner {
    None,
    Set,
    Pod,
}

/// Returns the owner that the policy wants for a pod's claim. An unknown policy retains the claim.
pub(crate) fn wanted_owner(set: &StatefulSet, pod: &PodSlot) -> WantedOwner {
    use ClaimRetentionPolicyType::{Delete, Retain};
    let policy = set.spec.claim_retention_policy;
    let condemned = is_condemned(set, pod);
    match (policy.when_scaled, policy.when_deleted) {
        (Delete, Retain | Delete) if condemned => WantedOwner::Pod,
        (Retain | Delete, Delete) => WantedOwner::Set,
        _ => WantedOwner::None,
    }
}

/// True if a policy value is unknown to this version.
pub(crate) fn is_policy_unknown(set: &StatefulSet) -> bool {
    let policy = set.spec.claim_retention_policy;
    [policy.when_scaled, policy.when_deleted].contains(&ClaimRetentionPolicyType::Other)
}

/// True if the set no longer wants a pod with this ordinal.
pub(crate) fn is_condemned(set: &StatefulSet, pod: &PodSlot) -> bool {
    pod.ordinal().index_in(set).is_none()
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
    let (set_owner, pod_owner) = (Owner::set(set), Owner::pod(pod));
    if set_owner.has_stale_owner_ref(claim) || pod_owner.has_stale_owner_ref(claim) {
        return true;
    }
    let (set_owns, pod_owns) = (
        set_owner.has_owner_ref(claim),
        pod_owner.has_owner_ref(claim),
    );
    if has_unexpected_controller(claim, set, pod) {
        return !set_owns && !pod_owns;
    }
    if has_non_controller_owner(claim, set, pod) {
        return false;
    }
    match wanted_owner(set, pod) {
        WantedOwner::None => !set_owns && !pod_owns,
        WantedOwner::Set => set_owns && !pod_owns,
        WantedOwner::Pod => !set_owns && pod_owns,
    }
}

/// Effect of an update of a claim's owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnersChange {
    /// The set or the pod became an owner, with which the claim is deleted.
    Adds,
    /// Owners were only removed.
    Removes,
}

/// Updates the owners in a claim's JSON: keeps owners of other kinds or names, removes every
/// reference to the set's or the pod's name, and appends the wanted owner.
///
/// Upstream: `updateClaimOwnerRefForSetAndPod`.
pub(crate) fn update_claim_owner_ref_for_set_and_pod(
    json: &mut Value,
    claim: &Claim,
    set: &StatefulSet,
    pod: &PodSlot,
) -> OwnersChange {
    let (set_owner, pod_owner) = (Owner::set(set), Owner::pod(pod));
    let unexpected = has_unexpected_controller(claim, set, pod);
    let kept: Vec<&OwnerReference> = claim
        .owner_references
        .iter()
        .filter(|r| !set_owner.matches_ref(r) && !pod_owner.matches_ref(r))
        .collect();
    let wanted = match wanted_owner(set, pod) {
        _ if unexpected => None,
        WantedOwner::None => None,
        WantedOwner::Set => Some(set_owner),
        WantedOwner::Pod => Some(pod_owner),
    };
    let added = wanted.filter(|owner| !kept.iter().any(|r| *r.uid == *owner.uid));

    let metadata = object_member(json, "metadata");
    let mut references = match metadata.get_mut("ownerReferences").map(Value::take) {
        Some(Value::Array(references)) => references,
        _ => Vec::new(),
    };
    let is_kept = |reference: &Value| {
        serde_json::from_value::<OwnerReference>(reference.clone())
            .is_ok_and(|r| !set_owner.matches_ref(&r) && !pod_owner.matches_ref(&r))
    };
    references.retain(is_kept);
    references.extend(added.map(|owner| json!(owner.reference())));
    if !references.is_empty() {
        metadata["ownerReferences"] = Value::Array(references);
    } else if let Value::Object(metadata) = metadata {
        metadata.remove("ownerReferences");
    }
    if added.is_some() {
        OwnersChange::Adds
    } else {
        OwnersChange::Removes
    }
}

/// Removes every reference with this uid from the owners in a claim's JSON.
pub(crate) fn remove_owner_ref(json: &mut Value, uid: &str) {
    let Some(Value::Object(metadata)) = json.get_mut("metadata") else {
        return;
    };
    if let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") {
        references.retain(|reference| reference["uid"] != uid);
        if references.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}
