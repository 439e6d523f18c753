//! Consistency store: keeps a sync from acting on caches older than the controller's own writes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::resource_version::compare;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};

use crate::claim::Claim;
use crate::controller_revision::ControllerRevision;
use crate::pod::Pod;
use crate::stateful_set::StatefulSet;

#[cfg(test)]
mod tests;

/// Resources whose writes are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackedResource {
    /// Pods.
    Pods,
    /// PersistentVolumeClaims.
    PersistentVolumeClaims,
    /// StatefulSets: their status.
    StatefulSets,
    /// ControllerRevisions.
    ControllerRevisions,
}

impl TrackedResource {
    /// The API resource.
    pub fn resource(self) -> &'static Resource {
        match self {
            Self::Pods => &PODS,
            Self::PersistentVolumeClaims => &PERSISTENT_VOLUME_CLAIMS,
            Self::StatefulSets => &STATEFUL_SETS,
            Self::ControllerRevisions => &CONTROLLER_REVISIONS,
        }
    }
}

impl fmt::Display for TrackedResource {
    /// Prints the resource with its group, as Go prints a `GroupResource`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource().group_resource().fmt(f)
    }
}

/// A cache that doesn't show one of the controller's own writes yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StaleCache {
    /// The cache's version is older than a written version.
    #[error(
        "read version: {read} is not as new as written version: {written} for group resource {resource}"
    )]
    Older {
        /// Version of the cache.
        read: String,
        /// Version that was written.
        written: String,
        /// Resource of the cache.
        resource: TrackedResource,
    },
    /// The cache still shows a deleted pod, and not as terminating.
    #[error("the cache does not show yet that pod {pod} was deleted")]
    PodDeleted {
        /// The pod.
        pod: ObjectKey,
    },
}

impl StaleCache {
    /// Returns the resource of the cache.
    pub fn resource(&self) -> TrackedResource {
        match self {
            Self::Older { resource, .. } => *resource,
            Self::PodDeleted { .. } => TrackedResource::Pods,
        }
    }
}

/// Tracks the controller's own writes until the caches show them.
///
/// Upstream: `consistency.ConsistencyStore`.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait ConsistencyStore: Send + Sync {
    /// Records that a write for the set `owner` returned `resource_version`.
    fn wrote_at(
        &self,
        owner: &ObjectKey,
        owner_uid: &str,
        resource: TrackedResource,
        resource_version: &str,
    );

    /// Records that the pod with the uid `pod_uid` was deleted for the set `owner`.
    fn deleted_pod(&self, owner: &ObjectKey, owner_uid: &str, pod: &ObjectKey, pod_uid: &str);

    /// Drops the writes for `owner`, which no longer exists.
    fn clear(&self, owner: &ObjectKey);

    /// Checks that all caches show all writes for `owner`, and drops the writes then.
    ///
    /// # Errors
    ///
    /// The first stale cache.
    fn ensure_ready(&self, owner: &ObjectKey) -> Result<(), StaleCache>;
}

/// State of the caches that the store depends on.
pub trait CacheVersions: Send + Sync {
    /// Version of the resource's cache; empty before the first list.
    fn last_sync_resource_version(&self, resource: TrackedResource) -> String;

    /// Returns true if the cache has this incarnation of the pod, and not as terminating.
    fn shows_pod_not_terminating(&self, pod: &ObjectKey, pod_uid: &str) -> bool;
}

/// The controller's caches; empty by default.
#[derive(Clone, Default)]
pub struct Caches {
    /// Pods.
    pub pods: Arc<Indexer<Pod>>,
    /// PersistentVolumeClaims.
    pub claims: Arc<Indexer<Claim>>,
    /// StatefulSets.
    pub sets: Arc<Indexer<StatefulSet>>,
    /// ControllerRevisions.
    pub revisions: Arc<Indexer<ControllerRevision>>,
}

impl CacheVersions for Caches {
    fn last_sync_resource_version(&self, resource: TrackedResource) -> String {
        match resource {
            TrackedResource::Pods => self.pods.last_sync_resource_version(),
            TrackedResource::PersistentVolumeClaims => self.claims.last_sync_resource_version(),
            TrackedResource::StatefulSets => self.sets.last_sync_resource_version(),
            TrackedResource::ControllerRevisions => self.revisions.last_sync_resource_version(),
        }
        .to_string()
    }

    fn shows_pod_not_terminating(&self, pod: &ObjectKey, pod_uid: &str) -> bool {
        self.pods
            .get(pod.namespace(), pod.name())
            .is_some_and(|cached| *cached.uid == *pod_uid && !cached.is_terminating())
    }
}

#[derive(Default)]
struct Record {
    owner_uid: Box<str>,
    written: BTreeMap<TrackedResource, Box<str>>,
    deleted_pods: BTreeMap<ObjectKey, Box<str>>,
}

/// A store that compares writes with the versions of the caches.
pub struct RealConsistencyStore {
    caches: Arc<dyn CacheVersions>,
    records: Mutex<BTreeMap<ObjectKey, Record>>,
}

impl RealConsistencyStore {
    /// Creates a store without writes.
    pub fn new(caches: Arc<dyn CacheVersions>) -> Self {
        Self {
            caches,
            records: Mutex::default(),
        }
    }

    fn update(&self, owner: &ObjectKey, owner_uid: &str, change: impl FnOnce(&mut Record)) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let record = records.entry(owner.clone()).or_default();
        if *record.owner_uid != *owner_uid {
            *record = Record {
                owner_uid: owner_uid.into(),
                ..Record::default()
            };
        }
        change(record);
    }

    fn check(&self, record: &Record) -> Result<(), StaleCache> {
        for (&resource, written) in &record.written {
            let read = self.caches.last_sync_resource_version(resource);
            if compare(written, &read).is_ok_and(std::cmp::Ordering::is_gt) {
                return Err(StaleCache::Older {
                    read,
                    written: written.to_string(),
                    resource,
                });
            }
        }
        for (pod, uid) in &record.deleted_pods {
            if self.caches.shows_pod_not_terminating(pod, uid) {
                return Err(StaleCache::PodDeleted { pod: pod.clone() });
            }
        }
        Ok(())
    }
}

impl ConsistencyStore for RealConsistencyStore {
    fn wrote_at(
        &self,
        owner: &ObjectKey,
        owner_uid: &str,
        resource: TrackedResource,
        resource_version: &str,
    ) {
        self.update(owner, owner_uid, |record| {
            let newer = record.written.get(&resource).is_some_and(|known| {
                compare(known, resource_version).is_ok_and(std::cmp::Ordering::is_ge)
            });
            if !newer {
                record.written.insert(resource, resource_version.into());
            }
        });
    }

    fn deleted_pod(&self, owner: &ObjectKey, owner_uid: &str, pod: &ObjectKey, pod_uid: &str) {
        self.update(owner, owner_uid, |record| {
            record.deleted_pods.insert(pod.clone(), pod_uid.into());
        });
    }

    fn clear(&self, owner: &ObjectKey) {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(owner);
    }

    fn ensure_ready(&self, owner: &ObjectKey) -> Result<(), StaleCache> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = records.get(owner) else {
            return Ok(());
        };
        self.check(record)?;
        records.remove(owner);
        Ok(())
    }
}

/// A store that tracks nothing, for a disabled feature gate.
pub struct NoopConsistencyStore;

impl ConsistencyStore for NoopConsistencyStore {
    fn wrote_at(&self, _: &ObjectKey, _: &str, _: TrackedResource, _: &str) {}

    fn deleted_pod(&self, _: &ObjectKey, _: &str, _: &ObjectKey, _: &str) {}

    fn clear(&self, _: &ObjectKey) {}

    fn ensure_ready(&self, _: &ObjectKey) -> Result<(), StaleCache> {
        Ok(())
    }
}
