//! The webhooks of the stored configurations.

use std::sync::Arc;

use kube_test_control_plane_api::admission::webhooks::Webhook;
use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_store::store::StoreReader;

use crate::admission::stored::objects;

/// The configurations at one revision.
#[derive(Debug, Default)]
pub(crate) struct WebhookIndex {
    pub(super) revision: u64,
    mutating: Vec<Configuration>,
    validating: Vec<Configuration>,
}

/// A configuration with at least one webhook.
#[derive(Debug)]
struct Configuration {
    /// Its resource version, which no other object has.
    version: u64,
    webhooks: Arc<[Webhook]>,
}

impl WebhookIndex {
    /// Returns the mutating webhooks: by the names of their configurations, then in the order there.
    pub(crate) fn mutating(&self) -> impl Iterator<Item = &Webhook> {
        self.mutating.iter().flat_map(|it| it.webhooks.iter())
    }

    /// Returns the validating webhooks, in the same order.
    pub(crate) fn validating(&self) -> impl Iterator<Item = &Webhook> {
        self.validating.iter().flat_map(|it| it.webhooks.iter())
    }

    /// Returns false if no webhook changes requests to a resource of this name.
    pub(crate) fn mutates(&self, plural: &str) -> bool {
        self.mutating()
            .any(|it| it.constraints.names_resource(plural))
    }

    /// Returns false if no webhook validates requests to a resource of this name.
    pub(crate) fn validates(&self, plural: &str) -> bool {
        self.validating()
            .any(|it| it.constraints.names_resource(plural))
    }

    pub(super) fn rebuilt(&self, store: &StoreReader, revision: u64, at: Option<u64>) -> Self {
        Self {
            revision,
            mutating: read(
                objects(store, ("mutatingwebhookconfigurations", ""), at),
                &self.mutating,
            ),
            validating: read(
                objects(store, ("validatingwebhookconfigurations", ""), at),
                &self.validating,
            ),
        }
    }
}

/// Returns the configurations. Unchanged ones stay compiled.
fn read(objects: Vec<Arc<Object>>, known: &[Configuration]) -> Vec<Configuration> {
    let read = objects.into_iter().map(|object| {
        let version = object.resource_version;
        let known = known.iter().find(|known| known.version == version);
        let known = known.map(|known| Arc::clone(&known.webhooks));
        Configuration {
            version,
            webhooks: known.unwrap_or_else(|| Webhook::read_all(&object.value()).into()),
        }
    });
    read.filter(|it| !it.webhooks.is_empty()).collect()
}
