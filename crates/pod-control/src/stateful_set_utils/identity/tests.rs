//! Names, ordinals and membership of pods.

use serde_json::json;
use statefulset_controller_util::testing::builders;

use super::*;

#[test]
fn names_are_members_strangers_or_malformed() {
    let set = builders::set("web").build();
    for (name, expected) in [
        ("web-0", Membership::Member),
        ("web-2147483647", Membership::Member),
        ("web-01", Membership::Malformed),
        ("web-007", Membership::Malformed),
        ("web-00", Membership::Malformed),
        ("web-2147483648", Membership::Malformed),
        ("web-99999999999999999999", Membership::Malformed),
        ("web", Membership::Stranger),
        ("web-", Membership::Stranger),
        ("web--1", Membership::Stranger),
        ("web-1-2", Membership::Stranger),
        ("db-0", Membership::Stranger),
        ("web0", Membership::Stranger),
    ] {
        let pod = builders::pod(&set, 0).with("metadata.name", name).build();
        assert_eq!(membership(&set, &pod), expected, "{name}");
    }
}

#[test]
fn identity_is_name_namespace_and_name_label() {
    let set = builders::set("web").build();
    let pod = || builders::pod(&set, 3);
    for (pod, expected) in [
        (pod(), true),
        (pod().without_label(POD_INDEX_LABEL), true),
        (pod().orphan(), true),
        (pod().without_label(POD_NAME_LABEL), false),
        (pod().label(POD_NAME_LABEL, "web-4"), false),
        (pod().with("metadata.namespace", "other"), false),
        (builders::pod(&set, "03"), false),
        (builders::pod(&builders::set("db").build(), 3), false),
    ] {
        let text = pod.text();
        assert_eq!(identity_matches(&set, &pod.build()), expected, "{text}");
    }
}

#[test]
fn identity_repair_writes_only_namespace_and_two_labels() {
    let set = builders::set("web").build();
    for (labels, expected) in [
        (
            json!({"app": "web", "apps.kubernetes.io/pod-index": "7"}),
            json!({"app": "web", "apps.kubernetes.io/pod-index": "3", "statefulset.kubernetes.io/pod-name": "web-3"}),
        ),
        (
            json!(null),
            json!({"apps.kubernetes.io/pod-index": "3", "statefulset.kubernetes.io/pod-name": "web-3"}),
        ),
    ] {
        let mut pod =
            json!({"metadata": {"labels": labels, "name": "x"}, "spec": {"hostname": "y"}});
        update_identity(&mut pod, &set, "web-3", Ordinal::from(3));
        let metadata = json!({"labels": expected, "name": "x", "namespace": set.namespace()});
        assert_eq!(
            pod,
            json!({"metadata": metadata, "spec": {"hostname": "y"}})
        );
    }
}

#[test]
fn ordinals_begin_at_start_and_never_overflow() {
    let set = builders::set("web").replicas(3).start(5).build();
    let index = |ordinal: i32| Ordinal::from(ordinal).index_in(&set);
    assert_eq!(
        [4, 5, 7, 8, 0].map(index),
        [None, Some(0), Some(2), None, None]
    );
    assert_eq!(pod_name(&set, Ordinal::of_index(&set, 2)), "web-7");
    assert_eq!(
        persistent_volume_claim_name(&set, "data", Ordinal::from(7)),
        "data-web-7"
    );
    assert!(Ordinal::from(6).is_below(&set, 2));
    assert!(!Ordinal::from(7).is_below(&set, 2));

    let last = builders::set("web").replicas(5).start(i32::MAX).build();
    assert_eq!(Ordinal::from(i32::MAX).index_in(&last), Some(0));
    assert_eq!(Ordinal::of_index(&last, 4).to_string(), "2147483651");
    assert!(Ordinal::from(i32::MAX).is_below(&last, i32::MAX));

    let none = builders::set("web").replicas(0).build();
    assert_eq!(Ordinal::from(0).index_in(&none), None);
}
