//! Webhooks: those of the stored configurations, and the calls of their servers.

mod client;
mod connection;
mod dial;
mod index;
mod services;
mod trust;

use std::sync::{Arc, PoisonError, RwLock};

use kube_test_control_plane_store::store::StoreReader;

use crate::faults::Faults;
pub(crate) use client::Call;
use client::WebhookClient;
use index::WebhookIndex;
pub use services::{WebhookHandler, WebhookServices};

/// The webhooks of a server. The index is rebuilt only after a change of a configuration.
#[derive(Debug)]
pub(crate) struct Webhooks {
    index: RwLock<Arc<WebhookIndex>>,
    pub(crate) client: WebhookClient,
}

impl Webhooks {
    /// Creates the webhooks of a server without services.
    pub(crate) fn new(store: StoreReader, faults: Faults) -> Self {
        Self {
            index: RwLock::default(),
            client: WebhookClient::new(WebhookServices::default(), store, faults),
        }
    }

    /// Returns the index of the stored configurations at a revision, `None` being the newest.
    pub(crate) fn index(&self, store: &StoreReader, at: Option<u64>) -> Arc<WebhookIndex> {
        let changes = store.admission_revision();
        let index = Arc::clone(&self.index.read().unwrap_or_else(PoisonError::into_inner));
        if at.is_some() {
            return Arc::new(index.rebuilt(store, changes, at));
        }
        if index.revision == changes {
            return index;
        }
        let index = Arc::new(index.rebuilt(store, changes, None));
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&index);
        index
    }
}
