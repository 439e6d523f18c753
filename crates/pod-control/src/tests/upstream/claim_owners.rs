//! Comparison of a claim's owners with the retention policy.

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{POD, SET, named_set, owned, reference, slot};
use crate::stateful_set_utils::is_claim_owner_up_to_date;

/// `whenScaled`, `whenDeleted`.
type Policy = (&'static str, &'static str);
const RETAIN: Policy = ("Retain", "Retain");
const WITH_SET: Policy = ("Retain", "Delete");
const ON_SCALE: Policy = ("Delete", "Retain");
const ALWAYS: Policy = ("Delete", "Delete");

fn ss(replicas: i32, policy: Policy) -> StatefulSet {
    let set = named_set(set(replicas), "stateful-set", "ss-456");
    set.retention(policy.0, policy.1).build()
}

mod test_is_claim_owner_up_to_date {
    use super::*;

    /// Checks eight claims: with and without a reference to the pod, to the set, and to two others.
    /// Only the first two matter.
    #[track_caller]
    fn check(policy: Policy, replicas: i32, ordinal: i32, needs_pod: bool, needs_set: bool) {
        let (set, name) = (ss(replicas, policy), format!("pod-{ordinal}"));
        let pod = slot(ordinal, &name, "pod-123");
        for cell in 0..8 {
            let [has_pod, has_set, has_others] = [1, 2, 4].map(|bit| cell & bit != 0);
            let others = ["rand1", "rand2"].map(|name| reference(POD, name, name, None));
            let owners = others.into_iter().filter(|_| has_others);
            let of_pod = reference(POD, &name, "pod-123", Some(true));
            let of_set = reference(SET, "stateful-set", "ss-456", Some(true));
            let claim = owned(
                owners
                    .chain(has_pod.then_some(of_pod))
                    .chain(has_set.then_some(of_set)),
            );
            let expected = has_pod == needs_pod && has_set == needs_set;
            let up_to_date = is_claim_owner_up_to_date(&claim, &set, &pod);
            assert_eq!(up_to_date, expected, "{:?}", claim.owner_references);
        }
    }

    #[test]
    fn retain() {
        check(RETAIN, 0, 0, false, false);
    }

    #[test]
    fn on_ss_delete() {
        check(WITH_SET, 0, 0, false, true);
    }

    #[test]
    fn on_scaledown_only_condemned() {
        check(ON_SCALE, 2, 2, true, false);
    }

    #[test]
    fn on_scaledown_only_remains() {
        check(ON_SCALE, 2, 1, false, false);
    }

    #[test]
    fn on_both_condemned() {
        check(ALWAYS, 2, 2, true, false);
    }

    #[test]
    fn on_both_remains() {
        check(ALWAYS, 2, 1, false, true);
    }
}

mod test_claim_owner_up_to_date_edge_cases {
    use super::*;

    /// The set wants one pod, so `pod-1` is condemned.
    #[track_caller]
    fn check<const N: usize>(policy: Policy, owners: [OwnerReference; N], expected: bool) {
        let (set, pod) = (ss(1, policy), slot(1, "pod-1", "pod-123"));
        let up_to_date = is_claim_owner_up_to_date(&owned(owners), &set, &pod);
        assert_eq!(up_to_date, expected);
    }

    fn pod(uid: &str, controller: Option<bool>) -> OwnerReference {
        reference(POD, "pod-1", uid, controller)
    }

    fn set(uid: &str, controller: Option<bool>) -> OwnerReference {
        reference(SET, "stateful-set", uid, controller)
    }

    #[test]
    fn normal_controller_pod() {
        check(ALWAYS, [pod("pod-123", Some(true))], true);
    }

    #[test]
    fn non_controller_causes_policy_mismatch_pod() {
        check(ALWAYS, [pod("pod-123", None)], false);
    }

    #[test]
    fn stale_controller_does_not_affect_policy_pod() {
        check(ALWAYS, [pod("pod-stale", Some(true))], true);
    }

    #[test]
    fn unexpected_controller_causes_policy_mismatch_pod() {
        let random = reference(POD, "Random", "random", Some(true));
        check(ALWAYS, [pod("pod-123", Some(true)), random], false);
    }

    #[test]
    fn normal_controller_set() {
        check(WITH_SET, [set("ss-456", Some(true))], true);
    }

    #[test]
    fn non_controller_causes_policy_mismatch_set() {
        // Upstream writes the version this way: only the uid makes the reference the set's.
        let misspelt = ("appsv1", "StatefulSet");
        let set = reference(misspelt, "stateful-set", "ss-456", None);
        check(WITH_SET, [set], false);
    }

    #[test]
    fn stale_controller_ignored_set() {
        check(WITH_SET, [set("set-stale", Some(true))], true);
    }

    #[test]
    fn unexpected_controller_causes_policy_mismatch_set() {
        let random = reference(SET, "Random", "random", Some(true));
        check(WITH_SET, [set("ss-456", Some(true)), random], false);
    }
}
