//! The endpoint slice controller: the addresses of the pods behind each service with a selector.

mod slices;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::FutureExt;
use http::Method;
use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::client::ActorClient;
use super::dependents::Dependents;
use super::runner::{Actor, Agenda, Work};
use slices::SliceChange;

const SERVICES: &str = "services";
const SLICES: &str = "endpointslices";

/// Keeps the slices of services.
#[derive(Debug)]
pub(super) struct EndpointSliceController {
    client: ActorClient,
    slices: Dependents,
    /// The services of each namespace that select pods.
    services: BTreeMap<Arc<str>, BTreeMap<Key, Selector>>,
    /// The labels of the pods in each namespace.
    pods: BTreeMap<Arc<str>, BTreeMap<Key, Labels>>,
}

impl EndpointSliceController {
    pub(super) fn new(client: ActorClient) -> Self {
        Self {
            client,
            slices: Dependents::default(),
            services: BTreeMap::new(),
            pods: BTreeMap::new(),
        }
    }

    fn note_service(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        self.slices.note_owner(entry);
        let object = &entry.object;
        let (key, namespace) = (&object.key, &object.key.namespace);
        let services = self.services.entry(Arc::clone(namespace)).or_default();
        let selector = (entry.change != Change::Deleted).then(|| selector(object));
        match selector.flatten() {
            Some(selector) => {
                services.insert(key.clone(), selector);
                agenda.now(key);
            }
            None => {
                services.remove(key);
            }
        }
        if services.is_empty() {
            self.services.remove(namespace);
        }
    }

    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        let namespace = &object.key.namespace;
        let pods = self.pods.entry(Arc::clone(namespace)).or_default();
        if entry.change == Change::Deleted {
            pods.remove(&object.key);
        } else {
            pods.insert(object.key.clone(), object.labels.clone());
        }
        if pods.is_empty() {
            self.pods.remove(namespace);
        }
        let versions = || entry.previous.iter().chain([object]);
        for (service, selector) in self.services.get(namespace).into_iter().flatten() {
            if versions().any(|pod| selector.matches(&pod.labels)) {
                agenda.now(service);
            }
        }
    }

    /// Returns the pods behind a service, by name.
    fn pods(&self, service: &Key) -> Vec<Value> {
        let services = self.services.get(&service.namespace);
        let Some(selector) = services.and_then(|services| services.get(service)) else {
            return Vec::new();
        };
        let pods = self.pods.get(&service.namespace).into_iter().flatten();
        let selected = pods.filter(|(_, labels)| selector.matches(*labels));
        let objects = selected.filter_map(|(key, _)| self.client.get(key));
        objects.map(|object| object.value()).collect()
    }
}

/// Returns the selector of a service; `None` if its endpoints are not this controller's business.
fn selector(service: &Object) -> Option<Selector> {
    let service = service.value();
    if service.pointer("/spec/type") == Some(&json!("ExternalName")) {
        return None;
    }
    let labels = service.pointer("/spec/selector")?.as_object()?;
    if labels.is_empty() {
        return None;
    }
    let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": labels})).ok()?;
    Selector::from_label_selector(Some(&selector)).ok()
}

async fn carry_out(
    client: ActorClient,
    namespace: Arc<str>,
    changes: Vec<SliceChange>,
) -> Option<Vec<Key>> {
    let slices = kinds::by_storage(SLICES)?;
    let mut made = Vec::new();
    for change in changes {
        let is_done = match change {
            SliceChange::Create(slice) => {
                let collection = slices.collection_path(&namespace);
                let (code, answer) = client.ask(Method::POST, &collection, &slice).await;
                let name = answer.pointer("/metadata/name").and_then(Value::as_str);
                made.push(Key::new(slices, &namespace, name.unwrap_or_default()));
                (200..300).contains(&code)
            }
            SliceChange::Replace(key, uid, slice) => {
                client.send(Method::PUT, (&key, &uid), "", &slice).await
            }
            SliceChange::Delete(key, uid) => client.delete((&key, &uid), &json!({})).await,
        };
        if !is_done {
            return None;
        }
    }
    Some(made)
}

impl Actor for EndpointSliceController {
    type Order = Infallible;
    type Done = Vec<Key>;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        match &*entry.object.key.storage {
            SERVICES => self.note_service(entry, agenda),
            "pods" => self.note_pod(entry, agenda),
            SLICES => {
                for service in self.slices.note(entry) {
                    agenda.now(&service);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, _agenda: &mut Agenda) -> Option<Work<Vec<Key>>> {
        let service = self.client.get(key)?;
        let is_selecting = self
            .services
            .get(&key.namespace)
            .is_some_and(|it| it.contains_key(key));
        if service.deleting
            || !is_selecting
            || self.slices.has_pending_expectations(&service, &self.client)
        {
            return None;
        }
        let found = self.slices.of(&service.uid, &self.client);
        let zone = |node: &str| self.zone(node);
        let changes = slices::changes(&service, &self.pods(key), found, &zone);
        if changes.is_empty() {
            return None;
        }
        let client = self.client.clone();
        Some(carry_out(client, Arc::clone(&key.namespace), changes).boxed())
    }

    fn done(&mut self, key: &Key, made: Vec<Key>, agenda: &mut Agenda) {
        self.slices.expect_creations(key, made);
        agenda.now(key);
    }

    fn reset(&mut self) {
        self.slices.clear();
        self.services.clear();
        self.pods.clear();
    }
}

impl EndpointSliceController {
    /// Returns the zone of a node.
    fn zone(&self, node: &str) -> Option<String> {
        let node = self.client.get(&super::nodes::node_key(node))?;
        let zone = node
            .value()
            .pointer("/metadata/labels")?
            .get("topology.kubernetes.io/zone")?
            .clone();
        zone.as_str().map(str::to_owned)
    }
}
