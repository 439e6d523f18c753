//! Who owns the claims, so that these go with their owner.

use integration::World;
use integration::space::Space;
use integration::stateful_sets::{PATIENCE, stateful_set, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS};

/// What keeps a condemned pod from going away.
const BLOCK: &str = "fake.example.com/blockDeletion";

mod test_autodelete_owner_refs {
    use super::*;

    /// The owners that a pod's claim has: whether the set is one, and whether the pod is.
    async fn owners(space: &Space, set: &Value, ordinal: usize) -> (bool, bool) {
        let claim = format!("fake-pvc-name-sts-{ordinal}");
        let claim = space.get(&PERSISTENT_VOLUME_CLAIMS, &claim).await;
        let pod = space.get(&PODS, &format!("sts-{ordinal}")).await;
        let owners = claim["metadata"]["ownerReferences"].as_array();
        let has = |kind: &str, uid: &str| {
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["kind"] == kind && owner["uid"] == uid)
        };
        (has("StatefulSet", uid(set)), has("Pod", uid(&pod)))
    }

    /// Upstream scales its own copy of the set down, of which the server never hears, and so never
    /// sees a pod own a claim. Here the server is told, and finalizers hold the condemned pods for
    /// as long as it takes to look.
    async fn has_owners(namespace: &str, when_deleted: &str, when_scaled: &str) {
        let world = World::with_controller().await;
        let space = world.namespace(namespace).await;
        let mut set = stateful_set("sts", 3);
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        let set = space.create_stable(&set).await;
        let kept = (when_deleted == "Delete", false);
        for ordinal in 0..3 {
            assert_eq!(owners(&space, &set, ordinal).await, kept, "{ordinal}");
        }

        for pod in ["sts-1", "sts-2"] {
            space.set_finalizers(pod, &[BLOCK]).await;
        }
        space.scale_only("sts", 1).await;
        let condemned = async || {
            let pods = space.pods().await;
            let going = pods
                .iter()
                .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
            (going.count() == 2).then_some(())
        };
        PATIENCE.until("two pods are deleted", condemned).await;
        // Claims get their owners before their pods are deleted.
        let pod_owns = when_scaled == "Delete";
        let going = (when_deleted == "Delete" && !pod_owns, pod_owns);
        assert_eq!(owners(&space, &set, 0).await, kept);
        assert_eq!(owners(&space, &set, 1).await, going);
        assert_eq!(owners(&space, &set, 2).await, going);

        for pod in ["sts-1", "sts-2"] {
            space.set_finalizers(pod, &[]).await;
        }
        space.until_stable(&set).await;
        assert_eq!(owners(&space, &set, 0).await, kept);
    }

    #[tokio::test(start_paused = true)]
    async fn always_retain() {
        has_owners("always-retain", "Retain", "Retain").await;
    }

    #[tokio::test(start_paused = true)]
    async fn delete_on_scaledown_only() {
        has_owners("delete-on-scaledown-only", "Retain", "Delete").await;
    }

    #[tokio::test(start_paused = true)]
    async fn delete_with_set_only() {
        has_owners("delete-with-set-only", "Delete", "Retain").await;
    }

    #[tokio::test(start_paused = true)]
    async fn always_delete() {
        has_owners("always-delete", "Delete", "Delete").await;
    }
}
