//! The namespaces that are served now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;

use super::super::sync::SetSyncer;

/// A namespace that is served.
pub(super) struct ServedNamespace {
    pub(super) syncer: Arc<SetSyncer>,
    /// Cancelled when the namespace is no longer served; running syncs end then.
    pub(super) stop: CancellationToken,
    /// Held by running syncs.
    pub(super) busy: RwLock<()>,
    /// Notified when the mirror denies a write.
    pub(super) denied: Notify,
}

impl ServedNamespace {
    pub(super) fn new(syncer: Arc<SetSyncer>) -> Self {
        Self {
            syncer,
            stop: CancellationToken::new(),
            busy: RwLock::default(),
            denied: Notify::new(),
        }
    }
}

/// The served namespaces by name.
#[derive(Default)]
pub(super) struct Registry(Mutex<BTreeMap<Box<str>, Arc<ServedNamespace>>>);

impl Registry {
    pub(super) fn get(&self, namespace: &str) -> Option<Arc<ServedNamespace>> {
        self.lock().get(namespace).cloned()
    }

    pub(super) fn insert(&self, namespace: &str, served: Arc<ServedNamespace>) {
        self.lock().insert(namespace.into(), served);
    }

    /// Removes a namespace, and waits until none of its syncs runs.
    pub(super) async fn remove(&self, namespace: &str) {
        let served = self.lock().remove(namespace);
        if let Some(served) = served {
            served.stop.cancel();
            drop(served.busy.write().await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<ServedNamespace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
