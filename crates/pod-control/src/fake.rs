//! An in-memory object manager whose caches show every write immediately.

#![expect(
    clippy::expect_used,
    reason = "a fake may panic on the mistakes in a test"
)]

use std::sync::Arc;

use async_trait::async_trait;
use kube_apimachinery::json::parse;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use kube_apimachinery::strategic_merge;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::error::Error;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::{Call, ObjectStore, RequestTracker};
use statefulset_controller_util::tracked_client::Timing;

use crate::stateful_pod_control::ObjectManager;
use crate::stateful_set_utils::{NewClaim, NewPod, ordinal};

/// In-memory pods, claims and sets.
///
/// Upstream: `fakeObjectManager`.
pub struct FakeObjectManager {
    /// Pods, with their last posted or put JSON.
    pub pods: ObjectStore<Pod>,
    /// Claims, with their last posted or put JSON.
    pub claims: ObjectStore<Claim>,
    /// The live sets.
    pub sets: Arc<Indexer<StatefulSet>>,
    /// Counts and fails calls.
    pub tracker: Arc<RequestTracker>,
}

impl Default for FakeObjectManager {
    fn default() -> Self {
        Self {
            pods: ObjectStore::new("pods", Arc::new(Indexer::new())),
            claims: ObjectStore::new("persistentvolumeclaims", Arc::new(Indexer::new())),
            sets: Arc::new(Indexer::new()),
            tracker: Arc::default(),
        }
    }
}

impl FakeObjectManager {
    /// Returns the pods that the set selects, by ascending ordinal.
    pub fn pods_of(&self, set: &StatefulSet) -> Vec<Arc<Pod>> {
        let selector = set.spec.selector.compiled();
        let selector = selector.expect("a test's set has a selector");
        let mut pods = self.pods.cache().list();
        pods.retain(|pod| *pod.namespace == *set.namespace() && selector.matches(&pod.labels));
        pods.sort_by_key(|pod| ordinal(&pod.name));
        pods
    }
}

#[async_trait]
impl SetReader for FakeObjectManager {
    async fn read_stateful_set(&self, key: &ObjectKey) -> Result<StatefulSet, Error> {
        let _request = self.tracker.begin(Call::ReadSet)?;
        let set = self.sets.get(key.namespace(), key.name());
        set.map(|set| StatefulSet::clone(&set)).ok_or_else(|| {
            let message = format!("statefulsets.apps {:?} not found", key.name());
            Error::api(404, "NotFound", message)
        })
    }
}

#[async_trait]
impl ObjectManager for FakeObjectManager {
    async fn create_pod(&self, set: &StatefulSet, pod: &NewPod) -> Result<Option<Arc<Pod>>, Error> {
        let _request = self.tracker.begin(Call::CreatePod)?;
        // Lets the calls of a batch overlap, so that tests can count parallel calls.
        tokio::task::yield_now().await;
        // An API server stores no pod without a phase. A pod that still has none is being created,
        // so it is replaced.
        let stored = self.pods.cache().get(set.namespace(), &pod.name);
        if stored.is_some_and(|stored| !stored.is_created()) {
            self.pods.delete(set.namespace(), &pod.name)?;
        }
        let body = pod.body().and_then(|body| parse(&body));
        let json = body.map_err(|error| {
            Error::InvalidRequest(format!("cannot read the pod template: {error}"))
        })?;
        let created = self.pods.create(json)?;
        Ok(Some(created).filter(|_| pod.is_outdated))
    }

    async fn read_pod(&self, namespace: &str, name: &str) -> Result<Live<Pod>, Error> {
        self.pods.read(namespace, name)
    }

    async fn update_pod(&self, _set: &StatefulSet, pod: Live<Pod>) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::UpdatePod)?;
        self.pods.update(pod)
    }

    async fn resize_pod(&self, _: &StatefulSet, pod: &Live<Pod>, spec: Value) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::ResizePod)?;
        let (namespace, name) = (&pod.object.namespace, &pod.object.name);
        let mut live = self.pods.read(namespace, name)?;
        if live.object.resource_version != pod.object.resource_version {
            let message = format!("the version of pod {name} has changed");
            return Err(Error::api(409, "Conflict", message));
        }
        let resized = strategic_merge::apply("Pod", &live.json, &json!({"spec": spec}));
        live.json = resized.expect("a resize merges");
        self.pods.update(live)
    }

    async fn delete_pod(&self, _: &StatefulSet, pod: &Pod, _: Timing) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::DeletePod)?;
        tokio::task::yield_now().await;
        if self.pods.read(&pod.namespace, &pod.name)?.object.uid != pod.uid {
            let message = format!("Precondition failed: UID in precondition: {}", pod.uid);
            return Err(Error::api(409, "Conflict", message));
        }
        self.pods.delete(&pod.namespace, &pod.name)
    }

    async fn evict_pod(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::EvictPod)?;
        self.delete_pod(set, pod, Timing::AtOnce).await
    }

    async fn create_claim(&self, _set: &StatefulSet, claim: &NewClaim<'_>) -> Result<(), Error> {
        let json = claim.to_value()?;
        let _request = self.tracker.begin(Call::CreateClaim)?;
        self.claims.create(json).map(drop)
    }

    fn get_claim(&self, namespace: &str, name: &str) -> Result<Option<Arc<Claim>>, Error> {
        let _request = self.tracker.begin(Call::GetClaim)?;
        Ok(self.claims.cache().get(namespace, name))
    }

    async fn read_claim(&self, namespace: &str, name: &str) -> Result<Live<Claim>, Error> {
        self.claims.read(namespace, name)
    }

    async fn update_claim(
        &self,
        _: &StatefulSet,
        claim: Live<Claim>,
        _: Timing,
    ) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::UpdateClaim)?;
        let incomplete = |owner: &OwnerReference| {
            owner.api_version.is_empty() || owner.kind.is_empty() || owner.name.is_empty()
        };
        if claim.object.owner_references.iter().any(incomplete) {
            let message = format!(
                "{}: an owner lacks its version, kind or name",
                claim.object.name
            );
            return Err(Error::api(422, "Invalid", message));
        }
        self.claims.update(claim)
    }
}
