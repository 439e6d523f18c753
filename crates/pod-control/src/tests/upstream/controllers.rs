//! Unexpected controllers of a claim, and owners that should control it but don't.

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{POD, SET, named_set, owned, reference, slot};
use crate::stateful_set_utils::{has_non_controller_owner, has_unexpected_controller};

mod test_has_unexpected_controller {
    use super::*;

    /// Checks each policy. If both retain, no controller is unexpected; upstream checks that only
    /// for an absent policy.
    #[track_caller]
    fn check<const N: usize>(owners: [OwnerReference; N], unexpected: bool) {
        let pod = slot(0, "pod", "pod-uid");
        let claim = owned(owners);
        let set = named_set(set(1), "set", "set-uid");
        for (set, expected) in [
            (
                set.clone()
                    .without("spec.persistentVolumeClaimRetentionPolicy"),
                false,
            ),
            (set.clone().retention("Retain", "Retain"), false),
            (set.clone().retention("Delete", "Retain"), unexpected),
            (set.clone().retention("Retain", "Delete"), unexpected),
            (set.clone().retention("Delete", "Delete"), unexpected),
        ] {
            let found = has_unexpected_controller(&claim, &set.build(), &pod);
            assert_eq!(found, expected, "{}", set.text());
        }
    }

    fn custom(controller: Option<bool>) -> OwnerReference {
        let kind = ("chipmunks/v1", "CustomController");
        reference(kind, "simon", "other-uid", controller)
    }

    fn own_set(uid: &str) -> OwnerReference {
        reference(SET, "set", uid, Some(true))
    }

    fn own_pod(uid: &str) -> OwnerReference {
        reference(POD, "pod", uid, Some(true))
    }

    #[test]
    fn custom_controller() {
        check([custom(Some(true))], true);
    }

    #[test]
    fn custom_non_controller() {
        check([custom(Some(false))], false);
    }

    #[test]
    fn custom_unspecified_controller() {
        check([custom(None)], false);
    }

    #[test]
    fn other_pod_controller() {
        check([reference(POD, "simon", "other-uid", Some(true))], true);
    }

    #[test]
    fn other_set_controller() {
        let kind = ("apps/v1", "Set");
        check([reference(kind, "simon", "other-uid", Some(true))], true);
    }

    #[test]
    fn own_set_controller() {
        check([own_set("set-uid")], false);
    }

    #[test]
    fn own_set_controller_stale_uid() {
        check([own_set("stale-uid")], true);
    }

    #[test]
    fn own_pod_controller() {
        check([own_pod("pod-uid")], false);
    }

    #[test]
    fn own_pod_controller_stale_uid() {
        check([own_pod("stale-uid")], true);
    }

    #[test]
    fn own_controller_and_another() {
        check([own_pod("pod-uid"), custom(Some(true))], true);
    }

    #[test]
    fn own_controller_and_a_non_controller() {
        check([own_pod("pod-uid"), custom(Some(false))], false);
    }
}

mod test_non_controller {
    use super::*;

    #[track_caller]
    fn check<const N: usize>(owners: [OwnerReference; N], expected: bool) {
        let set = named_set(set(1), "set", "set").build();
        let (claim, pod) = (owned(owners), slot(0, "pod", "pod"));
        assert_eq!(has_non_controller_owner(&claim, &set, &pod), expected);
    }

    /// Only the uid matters.
    fn uid(uid: &str, controller: Option<bool>) -> OwnerReference {
        reference(("", ""), "", uid, controller)
    }

    #[test]
    fn set_and_pod_controller() {
        check([uid("set", Some(true)), uid("pod", Some(true))], false);
    }

    #[test]
    fn set_controller_pod_noncontroller() {
        check([uid("set", Some(true)), uid("pod", None)], true);
    }

    #[test]
    fn set_noncontroller_pod_controller() {
        check([uid("set", None), uid("pod", Some(true))], true);
    }

    #[test]
    fn set_controller() {
        check([uid("set", Some(true))], false);
    }

    #[test]
    fn pod_controller() {
        check([uid("pod", Some(true))], false);
    }

    #[test]
    fn nothing() {
        check([], false);
    }

    #[test]
    fn set_noncontroller() {
        check([uid("set", None)], true);
    }

    #[test]
    fn set_noncontroller_with_ptr() {
        check([uid("set", Some(false))], true);
    }

    #[test]
    fn pod_noncontroller() {
        check([reference(("v1", "pod"), "pod", "pod", None)], true);
    }

    #[test]
    fn other_noncontroller() {
        check([uid("not-matching", None)], false);
    }
}
