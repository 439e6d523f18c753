//! The webhooks of the stored configurations.

use std::sync::Arc;

use kube_test_control_plane_api::admission::webhooks::Webhook;
use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_store::store::StoreReader;

use crate::admission::Phase;
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
    /// Returns the webhooks of a phase: by the names of their configurations, then in the order there.
    pub(crate) fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Webhook> {
        let configurations = match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        };
        configurations.iter().flat_map(|it| it.webhooks.iter())
    }

    /// Returns false if no webhook reviews requests to a resource of this name in a phase.
    pub(crate) fn reviews(&self, phase: Phase, plural: &str) -> bool {
        self.of_phase(phase)
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
