//! The namespaces that are served now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;

use super::super::sync::SetSyncer;

/// A namespace that is served.
pub(super) struct Member {
    pub(super) syncer: Arc<SetSyncer>,
    /// Cancelled when the namespace is no longer served; running syncs end then.
    pub(super) stop: CancellationToken,
    /// Held by running syncs.
    pub(super) busy: RwLock<()>,
    /// Notified when the mirror denies a write.
    pub(super) denied: Notify,
}

impl Member {
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
pub(super) struct Registry(Mutex<BTreeMap<Box<str>, Arc<Member>>>);

impl Registry {
    pub(super) fn get(&self, namespace: &str) -> Option<Arc<Member>> {
        self.members().get(namespace).cloned()
    }

    pub(super) fn insert(&self, namespace: &str, member: Arc<Member>) {
        self.members().insert(namespace.into(), member);
    }

    /// Removes a namespace, and waits until none of its syncs runs.
    pub(super) async fn remove(&self, namespace: &str) {
        let member = self.members().remove(namespace);
        if let Some(member) = member {
            member.stop.cancel();
            drop(member.busy.write().await);
        }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<Member>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
