//! Consistency store that records its writes for tests.

use std::sync::{Mutex, PoisonError};

use kube_apimachinery::object_key::ObjectKey;

use crate::consistency::{ConsistencyStore, StaleCache, TrackedResource};

/// Records writes as lines such as `ns/web web-uid pods 5`, and considers every cache up to date.
#[derive(Default)]
pub struct WriteLog(Mutex<Vec<String>>);

impl WriteLog {
    /// Returns and clears the recorded lines.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines())
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConsistencyStore for WriteLog {
    fn wrote_at(&self, owner: &ObjectKey, owner_uid: &str, what: TrackedResource, version: &str) {
        let line = format!("{owner} {owner_uid} {what} {version}");
        self.lines().push(line);
    }

    fn deleted_pod(&self, owner: &ObjectKey, owner_uid: &str, pod: &ObjectKey, pod_uid: &str) {
        let line = format!("{owner} {owner_uid} deleted {pod} {pod_uid}");
        self.lines().push(line);
    }

    fn clear(&self, owner: &ObjectKey) {
        let line = format!("{owner} cleared");
        self.lines().push(line);
    }

    fn ensure_ready(&self, _: &ObjectKey) -> Result<(), StaleCache> {
        Ok(())
    }
}
