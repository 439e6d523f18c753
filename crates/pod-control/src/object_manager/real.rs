//! Access to pods and claims in the API server.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use kube_apimachinery::json::to_go_string;
use kube_apimachinery::object_key::ObjectKey;
use serde_json::json;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::error::Error;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource};
use statefulset_client::rest::RestClient;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::{
    ConsistencyStore, TrackedResource, written_version,
};
use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::sync::Semaphore;
use weak_table::WeakValueHashMap;

use super::{ObjectManager, Timing};
use crate::stateful_set_utils::NewClaim;
use crate::stateful_set_utils::NewPod;

#[cfg(test)]
mod tests;

/// Minimum size of a large pod template.
const LARGE_TEMPLATE_BYTES: usize = 64 * 1024;
/// Pods of a set with a large template that are built and sent at a time. A batch has up to 500
/// pods, and each may take megabytes.
const LARGE_PODS_MAX: usize = 4;

/// Reads claims from a cache; all other reads and all writes go to the API server. Reports every
/// successful write to the consistency store.
///
/// Upstream: `realStatefulPodControlObjectManager`.
pub struct RealObjectManager {
    client: RestClient,
    claims: Arc<Indexer<Claim>>,
    consistency: Arc<dyn ConsistencyStore>,
    /// Turns for pods with large templates, by the uid of the set that creates them.
    large_pods: Mutex<WeakValueHashMap<Box<str>, Weak<Semaphore>>>,
}

impl RealObjectManager {
    /// Creates an object manager.
    pub fn new(
        client: RestClient,
        claims: Arc<Indexer<Claim>>,
        consistency: Arc<dyn ConsistencyStore>,
    ) -> Self {
        Self {
            client,
            claims,
            consistency,
            large_pods: Mutex::default(),
        }
    }

    fn client(&self, timing: Timing) -> RestClient {
        match timing {
            Timing::Queued => self.client.clone(),
            Timing::AtOnce => self.client.at_once(),
        }
    }

    /// Returns the set's turns for large pods; sets never wait for each other.
    fn large_pods(&self, set: &StatefulSet) -> Arc<Semaphore> {
        let mut sets = self
            .large_pods
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sets.get(set.uid()).unwrap_or_else(|| {
            let turns = Arc::new(Semaphore::new(LARGE_PODS_MAX));
            sets.insert(set.uid().into(), Arc::clone(&turns));
            turns
        })
    }

    async fn read<K: CachedObject>(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Live<K>, Error> {
        let text = self.client.get(resource, namespace, name).await?;
        Live::decode(&text).map_err(|source| Error::Decode {
            action: format!("read {} {namespace}/{name}", resource.kind),
            source,
        })
    }

    /// Reports the version of a successful write. An unreadable response still means success: there
    /// is just no version to wait for.
    fn written(&self, set: &StatefulSet, resource: TrackedResource, answer: &str) {
        if let Some(version) = written_version(answer) {
            self.consistency
                .wrote_at(&set.key(), set.uid(), resource, &version);
        }
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
        let _turn = if pod.template_bytes() < LARGE_TEMPLATE_BYTES {
            None
        } else {
            let turn = self.large_pods(set).acquire_owned().await.ok();
            // Building the last pod took a while, so other sets run first.
            tokio::task::yield_now().await;
            turn
        };
        let body = pod.body().map_err(|error| {
            Error::InvalidRequest(format!("cannot read the pod template: {error}"))
        })?;
        let answer = self.client.create(&PODS, pod.namespace(), body).await?;
        let created = Pod::decode(&answer).ok();
        if let Some(pod) = &created {
            let version = &pod.resource_version;
            let resource = TrackedResource::Pods;
            self.consistency
                .wrote_at(&set.key(), set.uid(), resource, version);
        }
        Ok(created.map(Arc::new))
    }

    async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error> {
        self.read(&PODS, namespace, name).await
    }

    async fn update_pod(&self, set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error> {
        let (namespace, name) = (&pod.object.namespace, &pod.object.name);
        let answer = self
            .client
            .replace(&PODS, namespace, name, to_go_string(&pod.json))
            .await?;
        self.written(set, TrackedResource::Pods, &answer);
        Ok(())
    }

    async fn delete_pod(&self, set: &StatefulSet, pod: &Pod, timing: Timing) -> Result<(), Error> {
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": pod.uid},
        });
        self.client(timing)
            .delete(&PODS, &pod.namespace, &pod.name, options.to_string())
            .await?;
        self.consistency
            .deleted_pod(&set.key(), set.uid(), &pod.key(), &pod.uid);
        Ok(())
    }

    async fn create_claim(&self, set: &StatefulSet, claim: &NewClaim) -> Result<(), Error> {
        let answer = self
            .client
            .create(&PERSISTENT_VOLUME_CLAIMS, &claim.namespace, claim.body())
            .await?;
        self.written(set, TrackedResource::PersistentVolumeClaims, &answer);
        Ok(())
    }

    fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error> {
        Ok(self.claims.get(namespace, name))
    }

    async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error> {
        self.read(&PERSISTENT_VOLUME_CLAIMS, namespace, name).await
    }

    async fn update_claim(
        &self,
        set: &StatefulSet,
        claim: Live<Claim>,
        timing: Timing,
    ) -> Result<(), Error> {
        let (namespace, name) = (&claim.object.namespace, &claim.object.name);
        let body = to_go_string(&claim.json);
        let answer = self
            .client(timing)
            .replace(&PERSISTENT_VOLUME_CLAIMS, namespace, name, body)
            .await?;
        self.written(set, TrackedResource::PersistentVolumeClaims, &answer);
        Ok(())
    }
}
