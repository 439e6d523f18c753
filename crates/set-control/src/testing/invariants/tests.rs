//! Violations that the invariants detect.

use serde_json::{Value, json};
use statefulset_controller_util::pod::POD_NAME_LABEL;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;

/// Two running pods of the set `web` with their claims.
struct Scene {
    set: StatefulSet,
    objects: FakeObjectManager,
}

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(2).claim_template("data")
}

fn scene(set: &Builder<StatefulSet>) -> Scene {
    let scene = Scene {
        set: set.build(),
        objects: FakeObjectManager::default(),
    };
    for ordinal in 0..2 {
        let pod = builders::pod(&scene.set, ordinal).revision("web-1");
        scene.objects.pods.put(pod.json());
        let claim = builders::claim(&scene.set, "data", ordinal);
        scene.objects.claims.put(claim.json());
    }
    scene
}

impl Scene {
    fn change_pod(&self, ordinal: i32, change: impl FnOnce(&mut Value)) {
        self.objects.change_pod(&self.set, ordinal, change);
    }

    fn give_claim(&self, ordinal: i32, owner: &str) {
        let owner = json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner});
        let claim = builders::claim(&self.set, "data", ordinal).owner(owner);
        self.objects.claims.put(claim.json());
    }

    /// Violations that the three checks report.
    fn violations(&self) -> [Option<String>; 3] {
        [monotonic, burst, update].map(|holds| holds(&self.set, &self.objects).err())
    }
}

/// The same violation from all checks.
fn all(wrong: &str) -> [Option<String>; 3] {
    [(); 3].map(|()| Some(wrong.to_owned()))
}

#[test]
fn correct_pods_violate_no_invariant() {
    assert_eq!(scene(&web()).violations(), [None, None, None]);
}

#[test]
fn monotonic_check_detects_a_missing_ordinal() {
    let scene = scene(&web());
    scene.objects.pods.delete("ns", "web-0").unwrap();
    let wrong = "pod web-1 found instead of ordinal 0".to_owned();
    assert_eq!(scene.violations(), [Some(wrong), None, None]);
}

#[test]
fn monotonic_check_detects_pods_running_out_of_order() {
    let scene = scene(&web());
    scene.change_pod(0, |pod| pod["status"]["phase"] = "Pending".into());
    let wrong = "pod web-1 runs before pod web-0".to_owned();
    assert_eq!(scene.violations(), [Some(wrong), None, None]);
    scene.change_pod(1, |pod| pod["status"]["phase"] = "Pending".into());
    assert_eq!(scene.violations(), [None, None, None]);
}

#[test]
fn checks_detect_wrong_identity_and_volumes() {
    let nameless = scene(&web());
    nameless.change_pod(1, |pod| {
        pod["metadata"]["labels"][POD_NAME_LABEL] = "web-7".into();
    });
    assert_eq!(
        nameless.violations(),
        all("pod web-1 has the wrong identity")
    );
    let stray = scene(&web());
    stray.change_pod(1, |pod| pod["spec"]["volumes"] = json!([]));
    assert_eq!(stray.violations(), all("pod web-1 has the wrong volumes"));
}

#[test]
fn checks_detect_a_missing_claim_under_every_policy() {
    for policy in ["Retain", "Delete"] {
        let scene = scene(&web().retention(policy, "Retain"));
        scene.objects.claims.delete("ns", "data-web-1").unwrap();
        assert_eq!(scene.violations(), all("claim data-web-1 is missing"));
    }
}

#[test]
fn checks_detect_wrong_claim_owners() {
    let (set_must, pod_must) = ("its set must own it", "its pod must own it");
    let (set_must_not, pod_must_not) = ("its set must not own it", "its pod must not own it");
    // `whenScaled`, `whenDeleted`, number of wanted pods, owner of claim 1, violation.
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
        let scene = scene(&web().replicas(replicas).retention(scaled, deleted));
        if deleted == "Delete" {
            scene.give_claim(0, "web-uid");
        }
        scene.give_claim(1, owner);
        let expected = wrong.map(|wrong| format!("claim data-web-1: {wrong}"));
        assert_eq!(
            scene.violations(),
            [(); 3].map(|()| expected.clone()),
            "{scaled} {deleted} {owner}"
        );
        // Claims of a pod that isn't running are not checked.
        for ordinal in [0, 1] {
            scene.change_pod(ordinal, |pod| pod["status"]["phase"] = "Pending".into());
        }
        assert_eq!(scene.violations(), [None, None, None]);
    }
}

#[test]
fn update_check_detects_wrong_revisions() {
    let status = json!({
        "currentReplicas": 1, "updatedReplicas": 1,
        "currentRevision": "web-1", "updateRevision": "web-2",
    });
    let with_status = web().with("status", status);
    let scene = scene(&with_status);
    let expected = |wrong: &str| [None, None, Some(wrong.to_owned())];
    assert_eq!(
        scene.violations(),
        expected(r#"pod web-1 has revision "web-1", not "web-2""#)
    );
    let relabel = |ordinal, revision: &str| {
        scene.change_pod(ordinal, |pod| {
            pod["metadata"]["labels"]["controller-revision-hash"] = revision.into();
        });
    };
    relabel(1, "web-2");
    assert_eq!(scene.violations(), [None, None, None]);
    relabel(0, "web-2");
    assert_eq!(
        scene.violations(),
        expected(r#"pod web-0 has revision "web-2", not "web-1""#)
    );
    let on_delete = Scene {
        set: with_status.on_delete().build(),
        objects: scene.objects,
    };
    assert_eq!(on_delete.violations(), [None, None, None]);
}
