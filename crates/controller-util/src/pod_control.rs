//! Adoption and release patches of pods.

use async_trait::async_trait;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde::Serialize;
use statefulset_client::cache::indexer::CachedObject;
use statefulset_client::error::Error;
use statefulset_client::resource::PODS;
use statefulset_client::rest::{PatchType, RestClient};
use std::sync::Arc;

use crate::consistency::{ConsistencyStore, TrackedResource};
use crate::pod::Pod;

#[cfg(any(test, feature = "testing"))]
pub mod fake;
#[cfg(test)]
mod tests;

/// Patches pods.
///
/// Upstream: `controller.PodControlInterface`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PodControl: Send + Sync {
    /// Applies a strategic merge patch to a pod.
    ///
    /// # Errors
    ///
    /// The API server's error, or a failed request.
    async fn patch_pod(&self, pod: &ObjectKey, patch: String) -> Result<(), Error>;
}

/// Patches pods through the API.
pub struct RealPodControl {
    client: RestClient,
    consistency: Arc<dyn ConsistencyStore>,
}

impl RealPodControl {
    /// Creates a pod control that reports its writes to `consistency`.
    pub fn new(client: RestClient, consistency: Arc<dyn ConsistencyStore>) -> Self {
        Self {
            client,
            consistency,
        }
    }
}

#[async_trait]
impl PodControl for RealPodControl {
    async fn patch_pod(&self, pod: &ObjectKey, patch: String) -> Result<(), Error> {
        let answer = self
            .client
            .patch(
                &PODS,
                pod.namespace(),
                pod.name(),
                PatchType::Strategic,
                patch,
            )
            .await?;
        let Ok(patched) = Pod::decode(&answer) else {
            return Ok(());
        };
        if let Some(owner) = &patched.controller {
            self.consistency.wrote_at(
                &ObjectKey::new(&patched.namespace, &owner.name),
                &owner.uid,
                TrackedResource::Pods,
                &patched.resource_version,
            );
        }
        Ok(())
    }
}

/// Body of the patch that adopts an object and adds the finalizers; its uid is a precondition.
/// Fields are in Go's order.
///
/// Upstream: `ownerRefControllerPatch`, named after its use.
pub fn adoption_patch(owner: &OwnerReference, uid: &str, finalizers: &[&str]) -> String {
    let (owner, uid) = (to_json(owner), to_json(uid));
    let finalizers = members_unless_empty("finalizers", finalizers);
    format!(r#"{{"metadata":{{"ownerReferences":[{owner}],"uid":{uid}{finalizers}}}}}"#)
}

/// Body of the patch that removes owners and finalizers from the object with the uid `uid`. Fields
/// are in Go's order.
///
/// Upstream: `GenerateDeleteOwnerRefStrategicMergeBytes`, named after its use.
pub fn release_patch(uid: &str, owner_uids: &[&str], finalizers: &[&str]) -> String {
    let removed = |owner: &&str| format!(r#"{{"$patch":"delete","uid":{}}}"#, to_json(*owner));
    let removed: Vec<String> = owner_uids.iter().map(removed).collect();
    let (uid, removed) = (to_json(uid), removed.join(","));
    let finalizers = members_unless_empty("$deleteFromPrimitiveList/finalizers", finalizers);
    format!(r#"{{"metadata":{{"uid":{uid},"ownerReferences":[{removed}]{finalizers}}}}}"#)
}

/// An additional list field of an object; empty text for an empty list.
fn members_unless_empty(name: &str, list: &[&str]) -> String {
    if list.is_empty() {
        return String::new();
    }
    format!(",{}:{}", to_json(name), to_json(list))
}

#[expect(clippy::expect_used, reason = "texts and references always serialize")]
fn to_json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("texts and references always serialize")
}
