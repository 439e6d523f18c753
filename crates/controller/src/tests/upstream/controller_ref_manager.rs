//! Pods that a controller claims, and the patch that releases an object.
//!
//! Upstream: `controller_ref_manager_test.go`.

use std::sync::Arc;

use kube_apimachinery::selector::Selector;
use serde_json::json;
use statefulset_controller_util::controller_ref_manager::{
    Membership, MockSetReader, PodControllerRefManager,
};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::pod_control::fake::FakePodControl;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::{Builder, owner_reference};
use statefulset_controller_util::testing::upstream;

/// The uid of the controller.
const UID: &str = "123";

fn controller() -> Builder<StatefulSet> {
    upstream::set(1).uid(UID)
}

/// A pod without a controller, of `production` or `testing`.
fn orphan(name: &str, kind: &str) -> Builder<Pod> {
    Builder::from_json(json!({"metadata": {
        "name": name, "namespace": upstream::NAMESPACE, "uid": format!("{name}-uid"),
        "labels": {"type": kind},
    }}))
}

fn owned_by(pod: Builder<Pod>, uid: &str) -> Builder<Pod> {
    pod.owner(owner_reference(("v1", "Fake"), "owner", uid, Some(true)))
}

fn owned(name: &str, kind: &str) -> Builder<Pod> {
    owned_by(orphan(name, kind), UID)
}

/// Claims pods and checks the claimed and the patched ones. Every patch must contain the controller
/// and the finalizers.
async fn claims(
    controller: &Builder<StatefulSet>,
    finalizers: &[&str],
    pods: &[Builder<Pod>],
    claimed: &[&str],
    patched: &[&str],
) {
    let (set, control) = (controller.build(), FakePodControl::default());
    let (live, mut reader) = (set.clone(), MockSetReader::new());
    reader
        .expect_read_stateful_set()
        .returning(move |_| Ok(live.clone()));
    let selector = Selector::parse("type=production").unwrap();
    let anybody = |_: &Pod| Membership::Member;
    let manager = PodControllerRefManager::new(&set, &selector, &anybody, &control, &reader)
        .with_finalizers(finalizers);
    let pods: Vec<Arc<Pod>> = pods.iter().map(|pod| Arc::new(pod.build())).collect();
    let got = manager.claim_pods(pods.clone()).await.unwrap();

    let wanted = pods.iter().filter(|pod| claimed.contains(&&*pod.name));
    assert_eq!(got, wanted.cloned().collect::<Vec<_>>());
    let patches = control.take_patches();
    let whom: Vec<&str> = patches.iter().map(|(pod, _)| pod.name()).collect();
    assert_eq!(whom, patched);
    for (_, patch) in patches {
        for part in finalizers.iter().chain([&set.uid()]) {
            assert!(patch.contains(&format!("{part:?}")), "{part} in {patch}");
        }
    }
}

mod test_claim_pods {
    use super::*;

    #[tokio::test]
    async fn claim_pods_with_correct_label() {
        let pods = [orphan("pod1", "production"), orphan("pod2", "testing")];
        claims(&controller().uid(""), &[], &pods, &["pod1"], &["pod1"]).await;
    }

    #[tokio::test]
    async fn controller_marked_for_deletion_can_not_claim_pods() {
        let pods = [orphan("pod1", "production"), orphan("pod2", "production")];
        claims(&controller().terminating(), &[], &pods, &[], &[]).await;
    }

    #[tokio::test]
    async fn controller_marked_for_deletion_can_not_claim_new_pods() {
        let pods = [owned("pod1", "production"), orphan("pod2", "production")];
        claims(&controller().terminating(), &[], &pods, &["pod1"], &[]).await;
    }

    #[tokio::test]
    async fn controller_can_not_claim_pods_owned_by_another_controller() {
        let another = owned_by(orphan("pod2", "production"), "AAAAA");
        let pods = [owned("pod1", "production"), another];
        claims(&controller(), &[], &pods, &["pod1"], &[]).await;
    }

    #[tokio::test]
    async fn controller_releases_claimed_pods_when_selector_doesnt_match() {
        let pods = [owned("pod1", "production"), owned("pod2", "testing")];
        claims(&controller(), &[], &pods, &["pod1"], &["pod2"]).await;
    }

    #[tokio::test]
    async fn controller_does_not_claim_orphaned_pods_marked_for_deletion() {
        let pods = [
            owned("pod1", "production").terminating(),
            orphan("pod2", "production").terminating(),
        ];
        claims(&controller(), &[], &pods, &["pod1"], &[]).await;
    }

    #[tokio::test]
    async fn controller_claims_or_release_pods_according_to_selector_with_finalizers() {
        let pods = [
            owned("pod1", "production"),
            owned("pod2", "testing"),
            orphan("pod3", "production"),
        ];
        let finalizers = ["foo-finalizer", "bar-finalizer"];
        let (claimed, patched) = (["pod1", "pod3"], ["pod2", "pod3"]);
        claims(&controller(), &finalizers, &pods, &claimed, &patched).await;
    }

    /// Two pods in different namespaces.
    fn in_two_namespaces() -> [Builder<Pod>; 2] {
        let elsewhere = orphan("pod2", "production").with("metadata.namespace", "fakens");
        [orphan("pod1", "production"), elsewhere]
    }

    #[tokio::test]
    async fn controller_does_not_claim_pods_of_different_namespace() {
        let pods = in_two_namespaces();
        claims(&controller(), &[], &pods, &["pod1"], &["pod1"]).await;
    }

    #[tokio::test]
    async fn cluster_scoped_controller_claims_pods_of_specified_namespace() {
        let (cluster_scoped, both) = (
            controller().with("metadata.namespace", ""),
            ["pod1", "pod2"],
        );
        claims(&cluster_scoped, &[], &in_two_namespaces(), &both, &both).await;
    }
}

mod test_generate_patch_bytes_for_delete {
    use statefulset_controller_util::pod_control::release_patch;

    #[test]
    fn check_the_structure_of_patch_bytes() {
        assert_eq!(
            release_patch("ss2", &["ss1"], &[]),
            r#"{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"}]}}"#
        );
    }

    #[test]
    fn check_if_parent_uid_is_escaped() {
        assert_eq!(
            release_patch("ss2", &[r#"ss1"hello"#], &[]),
            r#"{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1\"hello"}]}}"#
        );
    }

    #[test]
    fn check_if_revision_uid_uid_is_escaped() {
        assert_eq!(
            release_patch(r#"ss2"hello"#, &["ss1"], &[]),
            r#"{"metadata":{"uid":"ss2\"hello","ownerReferences":[{"$patch":"delete","uid":"ss1"}]}}"#
        );
    }

    #[test]
    fn check_the_structure_of_patch_bytes_with_multiple_owners() {
        assert_eq!(
            release_patch("ss2", &["ss1", "ss2"], &[]),
            concat!(
                r#"{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"},"#,
                r#"{"$patch":"delete","uid":"ss2"}]}}"#
            )
        );
    }

    #[test]
    fn check_the_structure_of_patch_bytes_with_a_finalizer_and_multiple_owners() {
        assert_eq!(
            release_patch("ss2", &["ss1", "ss2"], &["f1"]),
            concat!(
                r#"{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"},"#,
                r#"{"$patch":"delete","uid":"ss2"}],"$deleteFromPrimitiveList/finalizers":["f1"]}}"#
            )
        );
    }
}
