//! Violations that the invariants detect.

use serde_json::json;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::pod::POD_NAME_LABEL;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(2).claim_template("data")
}

/// Two running pods of the set `web` with their claims.
fn world(set: &Builder<StatefulSet>) -> World {
    let world = World::new(set.build(), FeatureGates::default());
    for ordinal in 0..2 {
        world.put_pod(&builders::pod(&world.set, ordinal).revision("web-1"));
        world.put_claim(&builders::claim(&world.set, "data", ordinal));
    }
    world
}

/// Replaces the owner of a pod's claim.
fn give_claim(world: &World, ordinal: i32, owner: &str) {
    let owner = json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner});
    world.put_claim(&builders::claim(&world.set, "data", ordinal).owner(owner));
}

/// Violations that the three checks report.
fn violations(world: &World) -> [Option<String>; 3] {
    [monotonic, burst, update].map(|invariants| world.check(invariants).err())
}

/// The same violation from all checks.
fn all(wrong: &str) -> [Option<String>; 3] {
    [(); 3].map(|()| Some(wrong.to_owned()))
}

#[test]
fn correct_pods_violate_no_invariant() {
    assert_eq!(violations(&world(&web())), [None, None, None]);
}

#[test]
fn monotonic_check_detects_a_missing_ordinal() {
    let world = world(&web());
    world.remove_pod(0);
    let wrong = "pod web-1 found instead of ordinal 0".to_owned();
    assert_eq!(violations(&world), [Some(wrong), None, None]);
}

#[test]
fn monotonic_check_detects_pods_running_out_of_order() {
    let world = world(&web());
    world.change_pod(0, |pod| pod["status"]["phase"] = "Pending".into());
    let wrong = "pod web-1 runs before pod web-0".to_owned();
    assert_eq!(violations(&world), [Some(wrong), None, None]);
    world.change_pod(1, |pod| pod["status"]["phase"] = "Pending".into());
    assert_eq!(violations(&world), [None, None, None]);
}

#[test]
fn checks_detect_wrong_identity_and_volumes() {
    let nameless = world(&web());
    nameless.change_pod(1, |pod| {
        pod["metadata"]["labels"][POD_NAME_LABEL] = "web-7".into();
    });
    assert_eq!(
        violations(&nameless),
        all("pod web-1 has the wrong identity")
    );
    let stray = world(&web());
    stray.change_pod(1, |pod| pod["spec"]["volumes"] = json!([]));
    assert_eq!(violations(&stray), all("pod web-1 has the wrong volumes"));
}

#[test]
fn checks_detect_a_missing_claim_under_every_policy() {
    for policy in ["Retain", "Delete"] {
        let world = world(&web().retention(policy, "Retain"));
        world.remove_claim("data-web-1");
        assert_eq!(violations(&world), all("claim data-web-1 is missing"));
    }
}

#[test]
fn checks_detect_wrong_claim_owners() {
    let (set_must, pod_must) = ("its set must own it", "its pod must own it");
    let (set_must_not, pod_must_not) = ("its set must not own it", "its pod must not own it");
    // `whenScaled`, `whenDeleted`, number of desired pods, owner of claim 1, violation.
    for (scaled, deleted, replicas, owner, wrong) in [
        ("Retain", "Retain", 2, "other", None),
        ("Retain", "Retain", 2, "web-uid", Some(set_must_not)),
        ("Retain", "Retain", 1, "web-1-uid", Some(pod_must_not)),
        ("Delete", "Retain", 2, "web-uid", Some(set_must_not)),
        ("Delete", "Retain", 2, "web-1-uid", Some(pod_must_not)),
        ("Delete", "Retain", 1, "web-1-uid", None),
        ("Delete", "Retain", 1, "other", Some(pod_must)),
        ("Retain", "Delete", 1, "web-uid", None),
        ("Retain", "Delete", 1, "other", Some(set_must)),
        ("Delete", "Delete", 2, "web-uid", None),
        ("Delete", "Delete", 2, "web-1-uid", Some(set_must)),
        ("Delete", "Delete", 1, "web-1-uid", None),
        ("Delete", "Delete", 1, "web-uid", Some(set_must_not)),
    ] {
        let world = world(&web().replicas(replicas).retention(scaled, deleted));
        if deleted == "Delete" {
            give_claim(&world, 0, "web-uid");
        }
        give_claim(&world, 1, owner);
        let expected = wrong.map(|wrong| format!("claim data-web-1: {wrong}"));
        assert_eq!(
            violations(&world),
            [(); 3].map(|()| expected.clone()),
            "{scaled} {deleted} {owner}"
        );
        // Claims of a pod that isn't running are not checked.
        for ordinal in [0, 1] {
            world.change_pod(ordinal, |pod| pod["status"]["phase"] = "Pending".into());
        }
        assert_eq!(violations(&world), [None, None, None]);
    }
}

#[test]
fn update_check_detects_wrong_revisions() {
    let status = json!({
        "currentReplicas": 1, "updatedReplicas": 1,
        "currentRevision": "web-1", "updateRevision": "web-2",
    });
    let with_status = web().with("status", status);
    let mut world = world(&with_status);
    let expected = |wrong: &str| [None, None, Some(wrong.to_owned())];
    assert_eq!(
        violations(&world),
        expected(r#"pod web-1 has revision "web-1", not "web-2""#)
    );
    let relabel = |ordinal, revision: &str| {
        world.change_pod(ordinal, |pod| {
            pod["metadata"]["labels"]["controller-revision-hash"] = revision.into();
        });
    };
    relabel(1, "web-2");
    assert_eq!(violations(&world), [None, None, None]);
    relabel(0, "web-2");
    assert_eq!(
        violations(&world),
        expected(r#"pod web-0 has revision "web-2", not "web-1""#)
    );
    world.set = with_status.on_delete().build();
    assert_eq!(violations(&world), [None, None, None]);
}
