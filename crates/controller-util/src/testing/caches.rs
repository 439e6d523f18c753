//! Fake caches whose progress a test controls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_apimachinery::object_key::ObjectKey;

use crate::consistency::{CacheVersions, TrackedResource};

/// Fake caches with the versions and pods that a test sets; empty at first.
///
/// Upstream: `fakeRVGetter`.
#[derive(Default)]
pub struct FakeCaches(Mutex<Shown>);

#[derive(Default)]
struct Shown {
    versions: BTreeMap<TrackedResource, String>,
    not_terminating: BTreeSet<(ObjectKey, String)>,
}

impl FakeCaches {
    /// Sets the version of a resource's cache.
    pub fn set_version(&self, resource: TrackedResource, version: &str) {
        self.shown().versions.insert(resource, version.to_owned());
    }

    /// Shows a pod as existing and not terminating.
    pub fn show_not_terminating(&self, pod: &ObjectKey, uid: &str) {
        self.shown()
            .not_terminating
            .insert((pod.clone(), uid.to_owned()));
    }

    /// Hides all pods.
    pub fn hide_pods(&self) {
        self.shown().not_terminating.clear();
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheVersions for FakeCaches {
    fn last_sync_resource_version(&self, resource: TrackedResource) -> String {
        self.shown()
            .versions
            .get(&resource)
            .cloned()
            .unwrap_or_default()
    }

    fn shows_pod_not_terminating(&self, pod: &ObjectKey, pod_uid: &str) -> bool {
        self.shown()
            .not_terminating
            .contains(&(pod.clone(), pod_uid.to_owned()))
    }
}
