//! Watches the labels of namespaces.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use statefulset_client::cache::indexer::{CachedObject, IndexKey};
use statefulset_client::cache::informer::{EventHandler, Informer, InformerConfig};
use statefulset_client::resource::NAMESPACES;
use statefulset_client::rest::{RestClient, Selectors};
use statefulset_fence::NamespaceSelector;
use statefulset_fence::names::SYSTEM_NAMESPACE;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// State of the label of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelState {
    /// True while it has the label.
    pub(super) is_served: bool,
    /// Number of changes, so that a label that went and returned isn't missed.
    pub(super) changes: u64,
}

/// A namespace that had the label at least once.
pub(super) struct NewNamespace {
    pub(super) namespace: Box<str>,
    pub(super) label: watch::Receiver<LabelState>,
}

/// The informer of the labelled namespaces.
pub(super) struct LabelWatch {
    informer: Option<Informer<Labelled>>,
    synced: watch::Receiver<bool>,
    /// Unbounded, because it holds each namespace at most once.
    new: mpsc::UnboundedReceiver<NewNamespace>,
}

impl LabelWatch {
    pub(super) fn new(client: &RestClient, selector: &NamespaceSelector, seed: u64) -> Self {
        let config = InformerConfig::default()
            .selectors(Selectors::default().labels(selector.to_string()))
            .seed(seed.wrapping_add(10));
        let mut informer = Informer::new(client.clone(), NAMESPACES, &config);
        let (sender, new) = mpsc::unbounded_channel();
        informer.add_handler(Arc::new(LabelHandler {
            new: sender,
            known: Mutex::default(),
        }));
        Self {
            synced: informer.has_synced(),
            informer: Some(informer),
            new,
        }
    }

    /// Becomes true when the namespaces have been listed.
    pub(super) fn has_synced(&self) -> watch::Receiver<bool> {
        self.synced.clone()
    }

    /// Watches until `cancelled`.
    pub(super) fn start(&mut self, tasks: &mut JoinSet<()>, cancelled: &CancellationToken) {
        if let Some(informer) = self.informer.take() {
            tasks.spawn(informer.run(cancelled.clone()));
        }
    }

    /// Returns the next namespace that has the label for the first time.
    pub(super) async fn next(&mut self) -> NewNamespace {
        match self.new.recv().await {
            Some(new_namespace) => new_namespace,
            // The informer has ended, and with it the controller.
            None => std::future::pending().await,
        }
    }
}

/// Keeps the states of the labels up to date.
struct LabelHandler {
    new: mpsc::UnboundedSender<NewNamespace>,
    known: Mutex<BTreeMap<Box<str>, watch::Sender<LabelState>>>,
}

impl LabelHandler {
    fn set(&self, namespace: &str, is_served: bool) {
        if namespace == SYSTEM_NAMESPACE {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !known.contains_key(namespace);
        let sender = known.entry(namespace.into()).or_default();
        sender.send_modify(|label| {
            label.is_served = is_served;
            label.changes += 1;
        });
        if is_new {
            let new_namespace = NewNamespace {
                namespace: namespace.into(),
                label: sender.subscribe(),
            };
            // Without a receiver the controller ends.
            let _ = self.new.send(new_namespace);
        }
    }
}

impl EventHandler<Labelled> for LabelHandler {
    fn on_add(&self, namespace: &Arc<Labelled>, _in_initial_list: bool) {
        self.set(&namespace.name, true);
    }

    fn on_update(&self, old: &Arc<Labelled>, new: &Arc<Labelled>) {
        // A list may show only the namespace's successor.
        if old.uid != new.uid {
            self.set(&new.name, true);
        }
    }

    fn on_delete(&self, namespace: &Arc<Labelled>, _final_state_unknown: bool) {
        self.set(&namespace.name, false);
    }
}

/// A namespace with the label.
struct Labelled {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Deserialize)]
struct Raw {
    metadata: RawMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMetadata {
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
}

impl CachedObject for Labelled {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn decode(json: &str) -> Result<Self, serde_json::Error> {
        let Raw { metadata } = serde_json::from_str(json)?;
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        })
    }

    fn index_values(&self, _out: &mut Vec<IndexKey>) {}
}
