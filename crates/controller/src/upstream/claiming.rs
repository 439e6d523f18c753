//! Adoption and release of pods and revisions, and the owners of their claims.

use serde_json::{Value, json};
use statefulset_client::resource::PODS;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::{builders, upstream};
use statefulset_history::{NewRevision, RevisionData};
use statefulset_pod_control::stateful_set_utils::persistent_volume_claims;

use super::fixtures::{Controller, UNBOUNDED, pod};

/// Returns the names of the pods that the set claims.
async fn claimed(controller: &Controller, set: &Builder<StatefulSet>) -> Vec<String> {
    let set = set.build();
    let selector = set.spec.selector.compiled();
    let pods = controller
        .syncer
        .pods_for_stateful_set(&set, selector.unwrap())
        .await;
    let names = pods.unwrap();
    names.iter().map(|pod| pod.name.to_string()).collect()
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
    let controller = Controller::with_cached(&[&set]);
    let pods = [
        pod(&set, 1),
        pod(&set, 2).orphan(),
        unlabelled(pod(&set, 3)).orphan(),
        renamed(pod(&set, 4), "xfoo-4").orphan(),
    ];
    for pod in &pods {
        controller.api.load(&PODS, pod.text());
        controller.cache_pod(pod);
    }
    assert_eq!(claimed(&controller, &set).await, ["foo-1", "foo-2"]);
    assert_eq!(controller.patched(), ["foo-2"]);
    let owner = json!(set.build().controller_reference());
    assert_eq!(controller.owners_of_pod("foo-2"), [owner]);
}

/// The API has none of the pods, so every release gets not found, which counts as success.
#[tokio::test(start_paused = true)]
async fn test_get_pods_for_stateful_set_release() {
    let set = upstream::set(3);
    let controller = Controller::with_cached(&[&set]);
    for pod in [
        pod(&set, 1),
        renamed(pod(&set, 2), "xfoo-2"),
        unlabelled(pod(&set, 3)),
        unlabelled(pod(&set, 4)).orphan(),
    ] {
        controller.cache_pod(&pod);
    }
    assert_eq!(claimed(&controller, &set).await, ["foo-1"]);
    assert_eq!(controller.patched(), ["foo-3", "xfoo-2"]);
}

#[tokio::test(start_paused = true)]
async fn test_adopt_orphan_revisions() {
    let set = upstream::set_with_labels(3, "ss1", "ss1", &[("foo", "bar")]);
    let controller = Controller::with_cached(&[&set]);
    // Upstream records the bare template and a newline, which stored JSON can't hold; here the data
    // and the name are the controller's.
    let revision = |set: &Builder<StatefulSet>, number: i64| {
        let set = set.build();
        let revision = NewRevision::new(
            &set,
            &RevisionData::new(&set.spec.template).unwrap(),
            number,
            0,
        );
        let mut object: Value = serde_json::from_str(&revision.body(&revision.name)).unwrap();
        object["metadata"]["namespace"] = upstream::NAMESPACE.into();
        object["metadata"]["uid"] = format!("{}-uid", revision.name).into();
        object
    };
    let annotated = set.clone();
    let annotated = annotated.with("spec.template.metadata.annotations", json!({"ss1": "ss1"}));
    let (owned, mut orphan) = (revision(&set, 1), revision(&annotated, 2));
    assert_ne!(owned["metadata"]["name"], orphan["metadata"]["name"]);
    orphan["metadata"]["ownerReferences"] = json!([]);
    for revision in [owned, orphan] {
        controller.history.revisions.put(revision);
    }
    let stored = set.build();
    let cached = || controller.history.revisions.cache().list();
    let mut revisions = cached();
    let adopted = controller
        .syncer
        .adopt_orphan_revisions(&stored, &mut revisions);
    adopted.await.unwrap();

    let revisions = cached();
    assert_eq!(revisions.len(), 2);
    for revision in revisions {
        let owner = set.build().controller_reference();
        assert_eq!(revision.controller, Some(owner), "{}", revision.name);
    }
}

mod test_orphaned_pods_with_pvc_delete_policy {
    use super::*;

    /// Three pods and the claims of their ordinals: the set owns the first pod, adopts the second
    /// and must not adopt the third, which has another name. Upstream's pods have no uid, unlike
    /// those of any API server; here the uid identifies a claim's owner.
    fn with_pods(set: &Builder<StatefulSet>) -> Controller {
        let controller = Controller::with_cached(&[set]);
        let (objects, built) = (&controller.objects, set.build());
        let pods = [
            pod(set, 0).uid("foo-0-uid"),
            pod(set, 1).uid("foo-1-uid").orphan(),
            renamed(pod(set, 2).uid("xfoo-2-uid"), "xfoo-2"),
        ];
        for (ordinal, pod) in (0..).zip(pods) {
            let pod = &pod.ready_since("2026-03-01T12:00:00Z");
            controller.api.load(&PODS, pod.text());
            controller.cache_pod(pod);
            for claim in persistent_volume_claims(&built, ordinal.into()) {
                objects.claims.put(claim.unwrap().json);
            }
        }
        controller
    }

    /// Returns the owner references of a claim; upstream checks only their names.
    fn owners_of_claim(controller: &Controller, set: &StatefulSet, ordinal: usize) -> Vec<Value> {
        let claim = controller.claim(set, ordinal);
        let owners = claim["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    }

    /// Returns the names of the cached pods that the set selects.
    fn names(controller: &Controller, set: &StatefulSet) -> Vec<String> {
        let pods = controller.objects.pods_of(set);
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    /// Upstream scales only its copy of the set to 0, which the controller never sees, so both
    /// syncs are for two replicas.
    async fn stay_at_two(when_scaled: &str, when_deleted: &str) {
        let set = upstream::set(4).retention(when_scaled, when_deleted);
        let set = set.replicas(2);
        let controller = with_pods(&set);
        let owned_by_set = when_deleted == "Delete";
        controller.sync(&set.build()).await.unwrap();
        assert_eq!(controller.patched(), ["xfoo-2", "foo-1"]);
        // The adopted pod has no revision, so it is updated first.
        assert_eq!(names(&controller, &set.build()), ["foo-0", "xfoo-2"]);
        controller.sync(&set.build()).await.unwrap();
        // The cache doesn't show the patch, so the pod is released again.
        assert_eq!(controller.patched(), ["xfoo-2", "foo-1", "xfoo-2"]);
        let owner = [json!(set.build().controller_reference())];
        for (ordinal, set_owns) in [(0, owned_by_set), (1, owned_by_set), (2, false)] {
            let owners = owners_of_claim(&controller, &set.build(), ordinal);
            assert_eq!(owners, owner[..usize::from(set_owns)], "{ordinal}");
        }
        assert_eq!(controller.objects.claims.cache().len(), 3);
        assert_eq!(controller.owners_of_pod("foo-0"), owner);
        assert_eq!(controller.owners_of_pod("foo-1"), owner);
        assert_eq!(controller.owners_of_pod("xfoo-2"), Vec::<Value>::new());
    }

    /// The case that upstream intends: the pods are condemned, and own their claims if the policy
    /// deletes them. Updates wait for the user, so only scaling deletes pods.
    async fn go_to_none(when_scaled: &str, when_deleted: &str) {
        let set = upstream::set(2).retention(when_scaled, when_deleted);
        let set = set.on_delete();
        let controller = with_pods(&set);
        controller.sync(&set.build()).await.unwrap();
        let scaled = controller.scale(&set.build(), 0);
        controller.sync(&scaled).await.unwrap();
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
                (_, "Delete") => vec![json!(scaled.controller_reference())],
                _ => Vec::new(),
            };
            assert_eq!(owners_of_claim(&controller, &scaled, ordinal), wanted);
        }
        assert_eq!(
            owners_of_claim(&controller, &scaled, 2),
            Vec::<Value>::new()
        );
        assert_eq!(controller.objects.claims.cache().len(), 3);
        // Only the last of the two pods is deleted in this sync.
        assert_eq!(names(&controller, &scaled), ["foo-0", "xfoo-2"]);
    }

    mod scale_down_retain_set_deletion_retain {
        #[tokio::test(start_paused = true)]
        async fn as_upstream() {
            super::stay_at_two("Retain", "Retain").await;
        }

        #[tokio::test(start_paused = true)]
        async fn goes_to_none() {
            super::go_to_none("Retain", "Retain").await;
        }
    }

    mod scale_down_retain_set_deletion_delete {
        #[tokio::test(start_paused = true)]
        async fn as_upstream() {
            super::stay_at_two("Retain", "Delete").await;
        }

        #[tokio::test(start_paused = true)]
        async fn goes_to_none() {
            super::go_to_none("Retain", "Delete").await;
        }
    }

    mod scale_down_delete_set_deletion_retain {
        #[tokio::test(start_paused = true)]
        async fn as_upstream() {
            super::stay_at_two("Delete", "Retain").await;
        }

        #[tokio::test(start_paused = true)]
        async fn goes_to_none() {
            super::go_to_none("Delete", "Retain").await;
        }
    }

    mod scale_down_delete_set_deletion_delete {
        #[tokio::test(start_paused = true)]
        async fn as_upstream() {
            super::stay_at_two("Delete", "Delete").await;
        }

        #[tokio::test(start_paused = true)]
        async fn goes_to_none() {
            super::go_to_none("Delete", "Delete").await;
        }
    }
}

mod test_stale_owner_ref_on_scaleup {
    use super::*;

    fn owners(claim: &Value) -> Vec<Value> {
        let owners = claim["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    }

    /// A claim owned by an earlier pod of the name will be deleted, so no pod may be created for
    /// it.
    async fn waits_for_the_claim_to_go(when_deleted: &str) {
        let set = upstream::set(3).retention("Delete", when_deleted).build();
        let controller = Controller::new(&[&upstream::set(3)]);
        controller.scale_up(&set, UNBOUNDED).await;
        assert_eq!(controller.stored(&set).status.replicas, 3);

        let scaled = controller.scale(&set, 2);
        controller.scale_down(&scaled).await;
        assert_eq!(controller.stored(&set).status.replicas, 2);
        let mut claim = controller.claim(&set, 2);
        let pod = builders::owner_reference(("v1", "Pod"), "foo-2", "foo-2-uid", Some(true));
        assert_eq!(owners(&claim), [pod]);

        claim["metadata"]["ownerReferences"][0]["uid"] = "stale".into();
        controller.objects.claims.put(claim);
        let created = controller.objects.create_pod_tracker.requests();
        let scaled = controller.scale(&set, 3);
        controller.scale_up(&scaled, 10).await;
        assert_eq!(controller.stored(&set).status.replicas, 2);
        assert_eq!(controller.objects.create_pod_tracker.requests(), created);
        let claim = controller.claim(&set, 2);
        assert_eq!(owners(&claim).len(), 1);
        assert_eq!(owners(&claim)[0]["uid"], "stale");

        let gone = controller
            .objects
            .claims
            .delete(set.namespace(), "datadir-foo-2");
        gone.unwrap();
        controller.scale_up(&scaled, UNBOUNDED).await;
        assert_eq!(controller.stored(&set).status.replicas, 3);
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
