//! Updates of a claim's owners.

use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::json;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{POD, SET, named_set, owned, reference, slot};
use super::owner_references::owner_refs_changed;
use crate::stateful_set_utils::{PodSlot, update_claim_owner_ref_for_set_and_pod};

/// Returns the updated owners, after checking the reported effect.
fn rewritten(owners: &[OwnerReference], set: &StatefulSet, pod: &PodSlot) -> Vec<OwnerReference> {
    let mut claim = Live {
        object: owned(owners.to_vec()),
        json: json!({"metadata": {"ownerReferences": owners}}),
    };
    let adds = update_claim_owner_ref_for_set_and_pod(&mut claim, set, pod);
    let references = claim.json["metadata"].get("ownerReferences").cloned();
    let references = references.unwrap_or(json!([]));
    let references: Vec<OwnerReference> = serde_json::from_value(references).unwrap();
    let is_owned = references
        .iter()
        .any(|r| [POD, SET].contains(&(&*r.api_version, &*r.kind)));
    assert_eq!(adds, is_owned);
    references
}

/// Upstream checks the two references by uid. Here all owners are compared: the others stay first
/// and unchanged.
mod test_update_claim_owner_ref_for_set_and_pod {
    use super::*;

    /// The claim's desired owner.
    #[derive(Clone, Copy)]
    enum Owner {
        Nobody,
        Set,
        Pod,
    }

    /// Upstream's mistaken mask adds its extra owner only if the set or the pod owns the claim, and
    /// so covers four states of eight; here all are covered.
    #[track_caller]
    fn check(policy: (&str, &str), ordinal: i32, others: &[OwnerReference], desired: Owner) {
        let set = named_set(set(5), "ss", "ss-123").retention(policy.0, policy.1);
        let (set, name) = (set.build(), format!("pod-{ordinal}"));
        let pod = slot(ordinal, &name, "pod-456");
        for cell in 0..8 {
            let [has_pod, has_set, has_extra] = [1, 2, 4].map(|bit| cell & bit != 0);
            let extra = reference(("custom/v1", "random"), "random", "abc", None);
            let mut others = others.to_vec();
            others.extend(has_extra.then_some(extra));
            let mut owners = Vec::new();
            owners.extend(has_pod.then(|| reference(POD, &name, "pod-456", Some(true))));
            owners.extend(has_set.then(|| reference(SET, "ss", "ss-123", Some(true))));
            owners.extend(others.clone());
            let added = match desired {
                Owner::Nobody => None,
                Owner::Set => Some(set.controller_reference()),
                Owner::Pod => {
                    let (version, kind) = POD;
                    Some(OwnerReference::new_controller(
                        version, kind, &name, "pod-456",
                    ))
                }
            };
            others.extend(added);
            assert_eq!(rewritten(&owners, &set, &pod), others, "{owners:?}");
        }
    }

    #[test]
    fn retain() {
        check(("Retain", "Retain"), 1, &[], Owner::Nobody);
    }

    #[test]
    fn delete_with_set() {
        check(("Retain", "Delete"), 1, &[], Owner::Set);
    }

    #[test]
    fn delete_with_scaledown_not_condemned() {
        check(("Delete", "Retain"), 1, &[], Owner::Nobody);
    }

    #[test]
    fn delete_on_scaledown_condemned() {
        check(("Delete", "Retain"), 8, &[], Owner::Pod);
    }

    #[test]
    fn delete_on_both_not_condemned() {
        check(("Delete", "Delete"), 1, &[], Owner::Set);
    }

    #[test]
    fn delete_on_both_condemned() {
        check(("Delete", "Delete"), 8, &[], Owner::Pod);
    }

    #[test]
    fn unexpected_controller() {
        let unknown = reference(("custom/v1", "Unknown"), "unknown", "xyz", Some(true));
        check(("Delete", "Delete"), 8, &[unknown], Owner::Nobody);
    }
}

/// Upstream compares only version, kind and name; here the whole references are compared.
mod test_update_claim_controller_ref {
    use super::*;

    #[track_caller]
    fn check(owners: &[OwnerReference], desired: &[OwnerReference]) {
        let set = named_set(set(1), "sts", "123").retention("Delete", "Delete");
        let found = rewritten(owners, &set.build(), &slot(0, "pod-0", "456"));
        assert!(!owner_refs_changed(desired, &found));
        assert_eq!(found, desired);
    }

    fn sts(uid: &str, controller: Option<bool>) -> OwnerReference {
        reference(SET, "sts", uid, controller)
    }

    fn new_controller() -> OwnerReference {
        OwnerReference::new_controller("apps/v1", "StatefulSet", "sts", "123")
    }

    #[test]
    fn set_correctly() {
        let foo = reference(("someone", "Else"), "foo", "", None);
        let owners = [sts("123", Some(true)), foo.clone()];
        check(&owners, &[foo, new_controller()]);
    }

    #[test]
    fn missing_controller() {
        check(&[sts("123", None)], &[new_controller()]);
    }

    /// The uid is also the pod's; only kind and name decide.
    #[test]
    fn matching_name_but_missing() {
        let other = reference(("someone", "else"), "sts", "456", None);
        check(
            std::slice::from_ref(&other),
            &[other.clone(), new_controller()],
        );
    }

    #[test]
    fn not_present() {
        check(&[], &[new_controller()]);
    }

    #[test]
    fn controller_but_no_uid() {
        check(&[sts("", Some(true))], &[]);
    }

    #[test]
    fn neither_controller_nor_uid() {
        check(&[sts("", None)], &[]);
    }
}
