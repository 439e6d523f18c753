//! Access to pods, claims and the live set.

use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::error::Error;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource::{PersistentVolumeClaims, Pods};
use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::tracked_client::{Timing, TrackedClient};

use crate::stateful_set_utils::{NewClaim, NewPod};

/// Reads and writes a set's dependencies. `get_…` reads a cache, `read_…` the API server.
///
/// Upstream: `StatefulPodControlObjectManager`.
#[async_trait]
pub trait ObjectManager: SetReader {
    /// Creates a pod. Returns the stored pod if it is outdated and the response can be decoded.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `CreatePod`.
    async fn create_pod(&self, set: &StatefulSet, pod: &NewPod) -> Result<Option<Arc<Pod>>, Error>;

    /// Reads a pod live.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `GetPod`, which reads the cache.
    async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error>;

    /// Writes a live pod with its resource version.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `UpdatePod`.
    async fn update_pod(&self, set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error>;

    /// Changes the resources of a live pod's containers, unless the pod has changed since. `spec` is a
    /// strategic merge patch of the pod's spec.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn resize_pod(
        &self,
        set: &StatefulSet,
        pod: &Live<Pod>,
        spec: Value,
    ) -> Result<(), Error>;

    /// Deletes a pod if its uid is unchanged.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; a conflict if the pod was recreated.
    ///
    /// Upstream: `DeletePod`.
    async fn delete_pod(&self, set: &StatefulSet, pod: &Pod, timing: Timing) -> Result<(), Error>;

    /// Evicts a pod if its uid is unchanged. Is not sent again if the server asks for it.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; 429 if a disruption budget forbids it.
    async fn evict_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error>;

    /// Creates a claim.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `CreateClaim`.
    async fn create_claim(&self, set: &StatefulSet, claim: &NewClaim<'_>) -> Result<(), Error>;

    /// Returns a claim from the cache.
    ///
    /// # Errors
    ///
    /// The cache fails.
    ///
    /// Upstream: `GetClaim`.
    fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error>;

    /// Reads a claim live.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error>;

    /// Writes a live claim with its resource version.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport.
    ///
    /// Upstream: `UpdateClaim`.
    async fn update_claim(
        &self,
        set: &StatefulSet,
        claim: Live<Claim>,
        timing: Timing,
    ) -> Result<(), Error>;
}

/// Reads claims from a cache; all other reads and all writes go to the API server.
///
/// Upstream: `realStatefulPodControlObjectManager`.
pub struct RealObjectManager {
    client: TrackedClient,
    claims: Arc<Indexer<Claim>>,
}

impl RealObjectManager {
    /// Creates an object manager.
    pub fn new(client: TrackedClient, claims: Arc<Indexer<Claim>>) -> Self {
        Self { client, claims }
    }
}

#[async_trait]
impl SetReader for RealObjectManager {
    async fn read_stateful_set(&self, key: &ObjectKey) -> Result<StatefulSet, Error> {
        self.client.read_stateful_set(key).await
    }
}

#[async_trait]
impl ObjectManager for RealObjectManager {
    async fn create_pod(&self, set: &StatefulSet, pod: &NewPod) -> Result<Option<Arc<Pod>>, Error> {
        let body = pod.body().map_err(|error| {
            Error::InvalidRequest(format!("cannot read the pod template: {error}"))
        })?;
        let created = self.client.create(set, Pods, body).await?;
        let needed = Some(created).filter(|_| pod.is_outdated);
        Ok(needed.and_then(|pod| Some(Arc::new(Pod::decode(&pod).ok()?))))
    }

    async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error> {
        self.client.read(Pods, namespace, name).await
    }

    async fn update_pod(&self, set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error> {
        self.client.replace_live(set, Pods, &pod).await
    }

    async fn resize_pod(
        &self,
        set: &StatefulSet,
        pod: &Live<Pod>,
        spec: Value,
    ) -> Result<(), Error> {
        let Pod { name, uid, .. } = &pod.object;
        let unchanged = json!({"uid": uid, "resourceVersion": pod.object.resource_version});
        let patch = json!({"metadata": unchanged, "spec": spec}).to_string();
        self.client.resize_pod(set, name, patch).await
    }

    async fn delete_pod(&self, set: &StatefulSet, pod: &Pod, timing: Timing) -> Result<(), Error> {
        self.client.timed(timing).delete_pod(set, pod).await
    }

    async fn evict_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        self.client.timed(Timing::AtOnce).evict_pod(set, pod).await
    }

    async fn create_claim(&self, set: &StatefulSet, claim: &NewClaim<'_>) -> Result<(), Error> {
        let body = claim.body()?;
        let created = self.client.create(set, PersistentVolumeClaims, body);
        created.await.map(drop)
    }

    fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error> {
        Ok(self.claims.get(namespace, name))
    }

    async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error> {
        self.client
            .read(PersistentVolumeClaims, namespace, name)
            .await
    }

    async fn update_claim(
        &self,
        set: &StatefulSet,
        claim: Live<Claim>,
        timing: Timing,
    ) -> Result<(), Error> {
        let client = self.client.timed(timing);
        client
            .replace_live(set, PersistentVolumeClaims, &claim)
            .await
    }
}
