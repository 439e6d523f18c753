//! Names, ordinals and membership of pods.

use statefulset_controller_util::controller_ref_manager::Membership;
use statefulset_controller_util::pod::{POD_INDEX_LABEL, POD_NAME_LABEL, Pod, PodName};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::{claim_pod_name, set};

use super::fixtures::{named_set, pod};
use crate::stateful_set_utils::{Ordinal, identity_matches, membership, update_identity};

#[test]
fn test_get_parent_name_and_ordinal() {
    let pod = pod(&set(3).build(), 1).build();
    let expected = Some(("foo", Some(1)));
    assert_eq!(pod.name.parent_name_and_ordinal(), expected);
    assert_eq!(PodName::from("1-bar").parent_name_and_ordinal(), None);
}

#[test]
fn test_get_claim_pod_name() {
    let set = named_set(set(1), "my-set", "test").build();
    for (claim, pod) in [
        ("volume-my-set-2", Some("my-set-2")),
        ("long-volume-my-set-20", Some("my-set-20")),
        ("volume-2-my-set", None),
        ("volume-pod-2", None),
    ] {
        assert_eq!(claim_pod_name(&set, claim), pod, "{claim}");
    }
}

#[test]
fn test_is_member_of() {
    let (foo, foo2) = (set(3).build(), named_set(set(3), "foo2", "test").build());
    let pod = pod(&foo, 1).build();
    assert_eq!(membership(&foo, &pod), Membership::Member);
    assert_eq!(membership(&foo2, &pod), Membership::Stranger);
}

#[test]
fn test_identity_matches() {
    let set = set(3).build();
    let pod = || pod(&set, 1);
    for (pod, expected) in [
        (pod(), true),
        (pod().with("metadata.name", "foo"), false),
        (pod().with("metadata.namespace", ""), false),
        (pod().without_label(POD_NAME_LABEL), false),
    ] {
        let text = pod.text();
        assert_eq!(identity_matches(&set, &pod.build()), expected, "{text}");
    }
}

/// Returns a pod after a repair of its identity.
fn repaired(set: &StatefulSet, pod: &Builder<Pod>) -> Builder<Pod> {
    let mut json = pod.json();
    update_identity(&mut json, set, "foo-1", Ordinal::from(1));
    Builder::from_json(json)
}

#[test]
fn test_update_identity() {
    let set = set(3).build();
    let pod = pod(&set, 1);
    let matches = |pod: &Builder<Pod>| identity_matches(&set, &pod.build());
    assert!(matches(&pod));
    for broken in [
        pod.clone().with("metadata.namespace", ""),
        pod.clone().without_label(POD_NAME_LABEL),
        pod.clone()
            .without_label(POD_NAME_LABEL)
            .without_label(POD_INDEX_LABEL),
        pod.clone().label(POD_NAME_LABEL, "foo-2"),
    ] {
        assert!(!matches(&broken));
        let repaired = repaired(&set, &broken);
        assert!(matches(&repaired));
        assert_eq!(repaired.json(), pod.json());
    }
}

#[test]
fn test_is_running_and_ready() {
    let pod = pod(&set(3).build(), 1);
    assert!(!pod.build().is_running_and_ready());
    assert!(!pod.clone().phase("Running").build().is_running_and_ready());
    let ready = pod.ready_since("2026-03-01T10:00:00Z");
    assert!(ready.build().is_running_and_ready());
    assert!(!ready.phase("Pending").build().is_running_and_ready());
}

#[test]
fn test_new_pod_controller_ref() {
    let set: StatefulSet = set(1).build();
    let controller = pod(&set, 0).build().controller.unwrap();
    assert_eq!(*controller, set.controller_reference());
    assert_eq!(
        (&*controller.api_version, &*controller.kind),
        ("apps/v1", "StatefulSet")
    );
    assert_eq!((&*controller.name, &*controller.uid), ("foo", "test"));
    assert_eq!(controller.controller, Some(true));
}
