//! The owners of a claim under the retention policy.

use serde_json::Value;

use super::object::{controller_reference, name, owners, set_owners, text, uid};
use super::set::Set;

/// Returns true if the reference is to an object of this name, with any uid.
fn names(owner: &Value, api: &str, kind: &str, name: &str) -> bool {
    owner["apiVersion"] == api && owner["kind"] == kind && owner["name"] == name
}

fn names_set(owner: &Value, set: &Set) -> bool {
    names(owner, "apps/v1", "StatefulSet", &set.name)
}

fn names_pod(owner: &Value, pod: &Value) -> bool {
    names(owner, "v1", "Pod", name(pod))
}

fn has(claim: &Value, uid: &str) -> bool {
    owners(claim).iter().any(|owner| text(owner, "/uid") == uid)
}

/// Returns true if the claim belongs to an earlier pod of the same name.
pub(super) fn is_of_earlier_pod(claim: &Value, pod: &Value) -> bool {
    let first = owners(claim).iter().find(|owner| names_pod(owner, pod));
    first.is_some_and(|owner| text(owner, "/uid") != uid(pod))
}

fn is_of_earlier_set(claim: &Value, set: &Set) -> bool {
    let first = owners(claim).iter().find(|owner| names_set(owner, set));
    first.is_some_and(|owner| text(owner, "/uid") != set.uid)
}

/// Both policies; unknown values retain.
fn policies(set: &Set) -> (bool, bool) {
    match (set.when_scaled.as_str(), set.when_deleted.as_str()) {
        ("Retain", "Delete") => (false, true),
        ("Delete", "Retain") => (true, false),
        ("Delete", "Delete") => (true, true),
        _ => (false, false),
    }
}

/// Returns true if a foreign controller owns the claim.
pub(super) fn has_unexpected_controller(claim: &Value, set: &Set, pod: &Value) -> bool {
    if set.when_scaled == "Retain" && set.when_deleted == "Retain" {
        return false;
    }
    owners(claim).iter().any(|owner| {
        if names_set(owner, set) {
            text(owner, "/uid") != set.uid
        } else if names_pod(owner, pod) {
            text(owner, "/uid") != uid(pod)
        } else {
            owner["controller"] == true
        }
    })
}

/// Returns true if set or pod own the claim without controlling it.
fn has_non_controlling_owner(claim: &Value, set: &Set, pod: &Value) -> bool {
    owners(claim).iter().any(|owner| {
        let owner_uid = text(owner, "/uid");
        (owner_uid == set.uid || owner_uid == uid(pod)) && owner["controller"] != true
    })
}

/// Returns true if the claim's owners match the policy.
pub(super) fn is_up_to_date(claim: &Value, set: &Set, pod: &Value) -> bool {
    if is_of_earlier_set(claim, set) || is_of_earlier_pod(claim, pod) {
        return true;
    }
    let (has_set, has_pod) = (has(claim, &set.uid), has(claim, uid(pod)));
    if has_unexpected_controller(claim, set, pod) {
        return !has_set && !has_pod;
    }
    if has_non_controlling_owner(claim, set, pod) {
        return false;
    }
    let is_condemned = !set.is_in_range(pod);
    match policies(set) {
        (false, false) => !has_set && !has_pod,
        (false, true) => has_set && !has_pod,
        (true, false) => !has_set && has_pod == is_condemned,
        (true, true) => has_set != is_condemned && has_pod == is_condemned,
    }
}

/// Returns true if the claim has a stale reference next to the set or the pod against the policy.
pub(super) fn is_lost_with_an_owner(claim: &Value, set: &Set, pod: &Value) -> bool {
    let is_condemned = !set.is_in_range(pod);
    let (wants_set, wants_pod) = match policies(set) {
        (true, _) if is_condemned => (false, true),
        (_, when_deleted) => (when_deleted, false),
    };
    let has_unwanted = has(claim, &set.uid) && !wants_set || has(claim, uid(pod)) && !wants_pod;
    has_unwanted && (is_of_earlier_set(claim, set) || is_of_earlier_pod(claim, pod))
}

/// Returns the claim with the owners that the policy requires, and whether one of them is new.
pub(super) fn rewritten(claim: &Value, set: &Set, pod: &Value) -> (Value, bool) {
    let is_unexpected = has_unexpected_controller(claim, set, pod);
    let is_foreign = |owner: &&Value| !names_set(owner, set) && !names_pod(owner, pod);
    let mut kept: Vec<Value> = owners(claim).iter().filter(is_foreign).cloned().collect();
    let wanted = match (policies(set), !set.is_in_range(pod)) {
        _ if is_unexpected => None,
        ((true, _), true) => Some(controller_reference("v1", "Pod", name(pod), uid(pod))),
        ((_, true), _) => Some(set.reference()),
        _ => None,
    };
    let added = wanted.filter(|wanted| kept.iter().all(|owner| owner["uid"] != wanted["uid"]));
    let adds_owner = added.is_some();
    kept.extend(added);
    let mut claim = claim.clone();
    set_owners(&mut claim, kept);
    (claim, adds_owner)
}

/// Returns true if the pod owns the claim.
pub(super) fn is_of_pod(claim: &Value, pod: &Value) -> bool {
    has(claim, uid(pod))
}

/// Returns the claim without the pod as owner; also without earlier sets and pods of these names if
/// the set is given. `None` if the pod doesn't own it.
pub(super) fn without_owner(claim: &Value, pod: &Value, stale_of: Option<&Set>) -> Option<Value> {
    if !is_of_pod(claim, pod) {
        return None;
    }
    let is_other = |owner: &&Value| {
        let owner_uid = text(owner, "/uid");
        let is_stale =
            |set: &Set| names_set(owner, set) && owner_uid != set.uid || names_pod(owner, pod);
        owner_uid != uid(pod) && !stale_of.is_some_and(is_stale)
    };
    let kept = owners(claim).iter().filter(is_other).cloned().collect();
    let mut claim = claim.clone();
    set_owners(&mut claim, kept);
    Some(claim)
}
