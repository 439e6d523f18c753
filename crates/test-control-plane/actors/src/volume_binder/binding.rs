//! The mutual references of a claim and its volume.

use std::sync::Arc;

use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::{Value, json};

use super::volume::{Reserved, reserved};
use crate::client::ActorClient;

/// A claim and its chosen or bound volume.
pub(super) struct Binding {
    pub(super) client: ActorClient,
    /// The claim.
    pub(super) object: Arc<Object>,
    /// The claim as JSON.
    pub(super) claim: Value,
    pub(super) volume: Key,
}

impl Binding {
    /// Writes the references in both objects; `None` on failure.
    pub(super) async fn carry_out(self) -> Option<()> {
        let (client, key, uid) = (&self.client, &self.object.key, &*self.object.uid);
        let was_bound = text_at(&self.claim, "/status/phase") == "Bound";
        let Some(found) = client.get(&self.volume) else {
            return self.not_found(was_bound).await;
        };
        let value = found.value();
        // Another claim may be binding to this volume.
        let version = json!({"resourceVersion": found.resource_version.to_string()});
        let volume_patch = match reserved(&value, key, uid) {
            Reserved::Other => return self.not_found(was_bound).await,
            Reserved::Ours if text_at(&value, "/spec/claimRef/uid") == uid => None,
            Reserved::Ours => Some(json!({
                "metadata": version,
                "spec": {"claimRef": {"uid": uid}},
            })),
            Reserved::No => Some(json!({
                "metadata": {
                    "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
                    "resourceVersion": found.resource_version.to_string(),
                },
                "spec": {"claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": *key.namespace,
                    "name": *key.name,
                    "uid": uid,
                    "resourceVersion": self.object.resource_version.to_string(),
                }},
            })),
        };
        if was_bound {
            return Some(());
        }
        let mut annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
        if text_at(&self.claim, "/spec/volumeName").is_empty() {
            annotations["pv.kubernetes.io/bound-by-controller"] = json!("yes");
        }
        let claim_patch = json!({
            "metadata": {"annotations": annotations},
            "spec": {"volumeName": *self.volume.name},
        });
        let status = json!({
            "phase": "Bound",
            "accessModes": value.pointer("/spec/accessModes"),
            "capacity": value.pointer("/spec/capacity"),
        });
        if let Some(patch) = volume_patch
            && !client.patch(&self.volume, &found.uid, patch).await
        {
            return None;
        }
        let bound = json!({"phase": "Bound"});
        let done = client.patch_status(&self.volume, &found.uid, &bound).await
            && client.patch(key, uid, claim_patch).await
            && client.patch_status(key, uid, &status).await;
        done.then_some(())
    }

    /// Handles a missing or foreign volume: a claim that was bound to it is lost.
    async fn not_found(&self, was_bound: bool) -> Option<()> {
        let lost = json!({"phase": "Lost"});
        let (key, uid) = (&self.object.key, &self.object.uid);
        let done = !was_bound || self.client.patch_status(key, uid, &lost).await;
        done.then_some(())
    }
}
