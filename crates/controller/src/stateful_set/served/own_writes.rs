//! Remembers this controller's own writes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use statefulset_controller_util::consistency::{ConsistencyStore, StaleCache, TrackedResource};

/// Maximum number of remembered writes, far more than the watches lag behind.
const WRITES_MAX: usize = 4096;

/// A consistency store that also remembers the versions of the latest writes.
pub(super) struct OwnWrites {
    inner: Arc<dyn ConsistencyStore>,
    versions: Mutex<Versions>,
}

#[derive(Default)]
struct Versions {
    known: BTreeSet<Box<str>>,
    /// The same, the oldest first.
    order: VecDeque<Box<str>>,
}

impl OwnWrites {
    pub(super) fn new(inner: Arc<dyn ConsistencyStore>) -> Self {
        Self {
            inner,
            versions: Mutex::default(),
        }
    }

    /// Returns true if a recent write of this controller made this version.
    pub(super) fn made(&self, resource_version: &str) -> bool {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.known.contains(resource_version)
    }
}

impl ConsistencyStore for OwnWrites {
    fn wrote_at(
        &self,
        owner: &ObjectKey,
        owner_uid: &str,
        resource: TrackedResource,
        resource_version: &str,
    ) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.known.insert(resource_version.into()) {
            versions.order.push_back(resource_version.into());
        }
        if versions.order.len() > WRITES_MAX
            && let Some(oldest) = versions.order.pop_front()
        {
            versions.known.remove(&oldest);
        }
        drop(versions);
        let inner = &self.inner;
        inner.wrote_at(owner, owner_uid, resource, resource_version);
    }

    fn deleted_pod(&self, owner: &ObjectKey, owner_uid: &str, pod: &ObjectKey, pod_uid: &str) {
        self.inner.deleted_pod(owner, owner_uid, pod, pod_uid);
    }

    fn clear(&self, owner: &ObjectKey) {
        self.inner.clear(owner);
    }

    fn ensure_ready(&self, owner: &ObjectKey) -> Result<(), StaleCache> {
        self.inner.ensure_ready(owner)
    }
}
