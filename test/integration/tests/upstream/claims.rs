//! Owners of claims, which determine when claims are deleted.

use integration::World;
use integration::space::Space;
use integration::stateful_sets::{
    PATIENCE, create_stable, list_pods, name, scale_only, set_finalizers, stateful_set, uid,
    until_stable,
};
use serde_json::{Value, json};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS};

/// Finalizer that keeps a condemned pod terminating.
const BLOCK: &str = "fake.example.com/blockDeletion";

mod test_autodelete_owner_refs {
    use super::*;

    /// Owner references of a pod's claim.
    async fn owners(space: &Space, ordinal: usize) -> Vec<Value> {
        let claim = format!("fake-pvc-name-sts-{ordinal}");
        let claim = space.get(&PERSISTENT_VOLUME_CLAIMS, &claim).await;
        let owners = claim["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    }

    /// Owner reference of a claim to an object of the controller's kinds.
    fn reference(api_version: &str, kind: &str, owner: &Value) -> Value {
        json!({
            "apiVersion": api_version, "kind": kind, "name": name(owner), "uid": uid(owner),
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Upstream scales a local copy of the set down, so that the server never sees a pod own a
    /// claim. This test scales the stored set, and finalizers keep the condemned pods while it
    /// looks.
    async fn assert_owners(namespace: &str, when_deleted: &str, when_scaled: &str) {
        let world = World::with_controller().await;
        let space = world.namespace(namespace).await;
        let mut set = stateful_set("sts", 3);
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        let set = create_stable(&space, &set).await;
        let by_set = when_deleted == "Delete";
        let by_set = Vec::from_iter(by_set.then(|| reference("apps/v1", "StatefulSet", &set)));
        for ordinal in 0..3 {
            assert_eq!(owners(&space, ordinal).await, by_set, "{ordinal}");
        }

        for pod in ["sts-1", "sts-2"] {
            set_finalizers(&space, pod, &[BLOCK]).await;
        }
        let scaled = scale_only(&space, "sts", 1).await;
        let condemned = async || {
            let pods = list_pods(&space).await;
            let going = pods
                .iter()
                .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
            (going.count() == 2).then_some(())
        };
        PATIENCE.until("two pods are deleted", condemned).await;
        // Claims get their owners before their pods are deleted.
        assert_eq!(owners(&space, 0).await, by_set);
        for ordinal in [1, 2] {
            let pod = space.get(&PODS, &format!("sts-{ordinal}")).await;
            let wanted = if when_scaled == "Delete" {
                vec![reference("v1", "Pod", &pod)]
            } else {
                by_set.clone()
            };
            assert_eq!(owners(&space, ordinal).await, wanted, "{ordinal}");
        }

        for pod in ["sts-1", "sts-2"] {
            set_finalizers(&space, pod, &[]).await;
        }
        until_stable(&space, &scaled).await;
        assert_eq!(owners(&space, 0).await, by_set);
    }

    #[tokio::test(start_paused = true)]
    async fn always_retain() {
        assert_owners("always-retain", "Retain", "Retain").await;
    }

    #[tokio::test(start_paused = true)]
    async fn delete_on_scaledown_only() {
        assert_owners("delete-on-scaledown-only", "Retain", "Delete").await;
    }

    #[tokio::test(start_paused = true)]
    async fn delete_with_set_only() {
        assert_owners("delete-with-set-only", "Delete", "Retain").await;
    }

    #[tokio::test(start_paused = true)]
    async fn always_delete() {
        assert_owners("always-delete", "Delete", "Delete").await;
    }
}
