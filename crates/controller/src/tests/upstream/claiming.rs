//! Adoption and release of pods and revisions, and the owners of their claims.

use serde_json::{Value, json};
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::{Call, builders, upstream};
use statefulset_history::{NewRevision, RevisionData};
use statefulset_pod_control::stateful_set_utils::persistent_volume_claims;

use super::fixtures::{Controller, UNBOUNDED, pod};

/// Returns the names of the pods that the set claims.
async fn claimed(controller: &Controller) -> Vec<String> {
    let selector = controller.set.spec.selector.compiled().unwrap();
    let claimed = controller
        .syncer
        .pods_for_stateful_set(&controller.set, selector);
    let pods = claimed.await.unwrap();
    pods.iter().map(|pod| pod.name.to_string()).collect()
}

fn renamed(pod: Builder<Pod>, name: &str) -> Builder<Pod> {
    pod.with("metadata.name", name)
}

fn unlabelled(pod: Builder<Pod>) -> Builder<Pod> {
    pod.without("metadata.labels")
}

#[tokio::test(start_paused = true)]
async fn test_get_pods_for_stateful_set_adopt() {
    let set = upstream::set(5);
    let controller = Controller::new(&[&set]);
    let pods = [
        pod(&set, 1),
        pod(&set, 2).orphan(),
        unlabelled(pod(&set, 3)).orphan(),
        renamed(pod(&set, 4), "xfoo-4").orphan(),
    ];
    for pod in &pods {
        controller.api.load(&PODS, pod.text());
        controller.put_pod(pod);
    }
    assert_eq!(claimed(&controller).await, ["foo-1", "foo-2"]);
    assert_eq!(controller.patched(), ["foo-2"]);
    let owner = json!(set.build().controller_reference());
    assert_eq!(controller.owners_of_pod("foo-2"), [owner]);
}

/// The API has none of the pods, so every release gets not found, which counts as success.
#[tokio::test(start_paused = true)]
async fn test_get_pods_for_stateful_set_release() {
    let set = upstream::set(3);
    let controller = Controller::new(&[&set]);
    for pod in [
        pod(&set, 1),
        renamed(pod(&set, 2), "xfoo-2"),
        unlabelled(pod(&set, 3)),
        unlabelled(pod(&set, 4)).orphan(),
    ] {
        controller.put_pod(&pod);
    }
    assert_eq!(claimed(&controller).await, ["foo-1"]);
    assert_eq!(controller.patched(), ["foo-3", "xfoo-2"]);
}

#[tokio::test(start_paused = true)]
async fn test_adopt_orphan_revisions() {
    let set = upstream::set_with_labels(3, "ss1", "ss1", &[("foo", "bar")]);
    let controller = Controller::new(&[&set]);
    // Upstream records the bare template and a newline, which stored JSON can't hold; here the data
    // and the name are the controller's.
    let revision = |set: &Builder<StatefulSet>, number: i64| {
        let set = set.build();
        let data = RevisionData::new(&set.spec.template).unwrap();
        let revision = NewRevision::new(&set, &data, number, 0);
        builders::revision(&set, &revision.name, number, data.recorded()).label("foo", "bar")
    };
    let annotated = set.clone();
    let annotated = annotated.with("spec.template.metadata.annotations", json!({"ss1": "ss1"}));
    controller.put_revision(&revision(&set, 1));
    controller.put_revision(&revision(&annotated, 2).orphan());
    let mut revisions = controller.revisions();
    assert_eq!(revisions.len(), 2);
    let (syncer, stored) = (&controller.syncer, &controller.set);
    syncer
        .adopt_orphan_revisions(stored, &mut revisions)
        .await
        .unwrap();

    let revisions = controller.revisions();
    assert_eq!(revisions.len(), 2);
    for revision in revisions {
        let owner = controller.set.controller_reference();
        assert_eq!(revision.controller, Some(owner), "{}", revision.name);
    }
}

mod test_orphaned_pods_with_pvc_delete_policy {
    use super::*;

    /// Three pods and the claims of their ordinals: the set owns the first pod, adopts the second
    /// and must not adopt the third, which has another name. Upstream's pods have no uid, unlike
    /// those of any API server; here the uid identifies a claim's owner.
    fn with_pods(set: &Builder<StatefulSet>) -> Controller {
        let controller = Controller::new(&[set]);
        let pods = [
            pod(set, 0).uid("foo-0-uid"),
            pod(set, 1).uid("foo-1-uid").orphan(),
            renamed(pod(set, 2).uid("xfoo-2-uid"), "xfoo-2"),
        ];
        for (ordinal, pod) in (0..).zip(pods) {
            let pod = &pod.ready_since("2026-03-01T12:00:00Z");
            controller.api.load(&PODS, pod.text());
            controller.put_pod(pod);
            for claim in persistent_volume_claims(&controller.set, ordinal.into()) {
                controller.put_claim(&Builder::from_json(claim.to_value().unwrap()));
            }
        }
        controller
    }

    /// Upstream scales only its copy of the set to 0, which the controller never sees, so both
    /// syncs are for two replicas.
    async fn stay_at_two(when_scaled: &str, when_deleted: &str) {
        let set = upstream::set(4).retention(when_scaled, when_deleted);
        let set = set.replicas(2);
        let mut controller = with_pods(&set);
        let owned_by_set = when_deleted == "Delete";
        controller.sync().await.unwrap();
        assert_eq!(controller.patched(), ["xfoo-2", "foo-1"]);
        // The adopted pod has no revision, so it is updated first.
        assert_eq!(controller.pod_names(), ["foo-0", "xfoo-2"]);
        controller.sync().await.unwrap();
        // The cache doesn't show the patch, so the pod is released again.
        assert_eq!(controller.patched(), ["xfoo-2", "foo-1", "xfoo-2"]);
        let owner = [json!(controller.set.controller_reference())];
        for (ordinal, set_owns) in [(0, owned_by_set), (1, owned_by_set), (2, false)] {
            let owners = controller.owners_of_claim(&format!("datadir-foo-{ordinal}"));
            assert_eq!(owners, owner[..usize::from(set_owns)], "{ordinal}");
        }
        assert_eq!(controller.claims().len(), 3);
        assert_eq!(controller.owners_of_pod("foo-0"), owner);
        assert_eq!(controller.owners_of_pod("foo-1"), owner);
        assert_eq!(controller.owners_of_pod("xfoo-2"), Vec::<Value>::new());
    }

    /// The case that upstream intends: the pods are condemned, and own their claims if the policy
    /// deletes them. Updates wait for the user, so only scaling deletes pods.
    async fn go_to_none(when_scaled: &str, when_deleted: &str) {
        let set = upstream::set(2).retention(when_scaled, when_deleted);
        let set = set.on_delete();
        let mut controller = with_pods(&set);
        controller.sync().await.unwrap();
        controller.scale(0);
        controller.sync().await.unwrap();
        for ordinal in 0..2 {
            let wanted = match (when_scaled, when_deleted) {
                ("Delete", _) => {
                    let pod = format!("foo-{ordinal}");
                    let uid = format!("{pod}-uid");
                    vec![builders::owner_reference(
                        ("v1", "Pod"),
                        &pod,
                        &uid,
                        Some(true),
                    )]
                }
                (_, "Delete") => vec![json!(controller.set.controller_reference())],
                _ => Vec::new(),
            };
            let owners = controller.owners_of_claim(&format!("datadir-foo-{ordinal}"));
            assert_eq!(owners, wanted);
        }
        assert_eq!(
            controller.owners_of_claim("datadir-foo-2"),
            Vec::<Value>::new()
        );
        assert_eq!(controller.claims().len(), 3);
        // Only the last of the two pods is deleted in this sync.
        assert_eq!(controller.pod_names(), ["foo-0", "xfoo-2"]);
    }

    /// The module of a `whenScaled`: one row for each `whenDeleted`, with this project's case.
    macro_rules! rows {
        ($scaled:literal: $($row:ident $deleted:literal),*) => {$(
            mod $row {
                #[tokio::test(start_paused = true)]
                async fn as_upstream() {
                    super::super::stay_at_two($scaled, $deleted).await;
                }

                #[tokio::test(start_paused = true)]
                async fn goes_to_none() {
                    super::super::go_to_none($scaled, $deleted).await;
                }
            }
        )*};
    }

    mod scale_down_retain {
        rows!("Retain": set_deletion_retain "Retain", set_deletion_delete "Delete");
    }

    mod scale_down_delete {
        rows!("Delete": set_deletion_retain "Retain", set_deletion_delete "Delete");
    }
}

mod test_stale_owner_ref_on_scaleup {
    use super::*;

    /// A claim owned by an earlier pod of the name will be deleted, so no pod may be created for
    /// it.
    async fn waits_for_the_claim_to_go(when_deleted: &str) {
        let set = upstream::set(3).retention("Delete", when_deleted);
        let mut controller = Controller::uncached(&[&set]);
        controller.scale_up(UNBOUNDED).await;
        assert_eq!(controller.set.status.replicas, 3);

        controller.scale(2);
        controller.scale_down().await;
        assert_eq!(controller.set.status.replicas, 2);
        let pod = |uid| builders::owner_reference(("v1", "Pod"), "foo-2", uid, Some(true));
        assert_eq!(
            controller.owners_of_claim("datadir-foo-2"),
            [pod("foo-2-uid")]
        );

        let claim = controller.claim("datadir-foo-2").unwrap();
        let owners = json!([pod("stale")]);
        controller.put_claim(&Builder::from_json(claim).with("metadata.ownerReferences", owners));
        let created = controller.requests(Call::CreatePod);
        controller.scale(3);
        controller.scale_up(10).await;
        assert_eq!(controller.set.status.replicas, 2);
        assert_eq!(controller.requests(Call::CreatePod), created);
        assert_eq!(controller.owners_of_claim("datadir-foo-2"), [pod("stale")]);

        controller.remove_claim("datadir-foo-2");
        controller.scale_up(UNBOUNDED).await;
        assert_eq!(controller.set.status.replicas, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn when_scaled_delete_when_deleted_retain() {
        waits_for_the_claim_to_go("Retain").await;
    }

    #[tokio::test(start_paused = true)]
    async fn when_scaled_delete_when_deleted_delete() {
        waits_for_the_claim_to_go("Delete").await;
    }
}
