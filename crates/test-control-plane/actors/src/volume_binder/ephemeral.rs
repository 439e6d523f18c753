//! Creation of the claims of ephemeral volumes, which pods own.
//!
//! Upstream: `ephemeral.Controller`

use std::convert::Infallible;

use futures::FutureExt;
use kube_test_control_plane_api::members::{list_at, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::{Value, json};

use super::CLAIMS;
use crate::client::ActorClient;
use crate::pods::{PodFields, claim_key};
use crate::runner::{Actor, Agenda, Work};

/// Creates the missing claims of new pods.
#[derive(Debug)]
pub(crate) struct EphemeralVolumes {
    client: ActorClient,
    fields: PodFields,
}

impl EphemeralVolumes {
    pub(crate) fn new(client: ActorClient) -> Self {
        Self {
            client,
            fields: PodFields::new(),
        }
    }
}

impl Actor for EphemeralVolumes {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match (&*object.key.storage, entry.change) {
            ("pods", Change::Added) => agenda.now(&object.key),
            (CLAIMS, Change::Deleted) => {
                let claim = object.value();
                let mut owners = list_at(&claim, "/metadata/ownerReferences");
                if let Some(owner) = owners.find(|owner| owner["kind"] == "Pod") {
                    let pod = text_at(owner, "/name");
                    agenda.now(&Key::of("pods", &object.key.namespace, pod));
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, _: &mut Agenda) -> Option<Work<()>> {
        let pod = self.client.get(key).filter(|pod| !pod.deleting)?;
        if self.fields.is_over(&pod) {
            return None;
        }
        let value = pod.value();
        let wanted = list_at(&value, "/spec/volumes").filter_map(|volume| claim(&pod, volume));
        let missing: Vec<Value> = wanted
            .filter(|claim| {
                let name = text_at(claim, "/metadata/name");
                self.client.get(&claim_key(&key.namespace, name)).is_none()
            })
            .collect();
        if missing.is_empty() {
            return None;
        }
        let client = self.client.clone();
        let collection = format!("/api/v1/namespaces/{}/{CLAIMS}", key.namespace);
        Some(
            async move {
                for claim in missing {
                    if !client.create(&collection, &claim).await {
                        return None;
                    }
                }
                Some(())
            }
            .boxed(),
        )
    }

    fn reset(&mut self) {}
}

/// Returns the claim of a pod's volume, if that is ephemeral.
fn claim(pod: &Object, volume: &Value) -> Option<Value> {
    let template = volume.pointer("/ephemeral/volumeClaimTemplate")?;
    let name = format!("{}-{}", pod.key.name, volume.get("name")?.as_str()?);
    let mut metadata = json!({
        "name": name,
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "Pod", "name": &*pod.key.name, "uid": &*pod.uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    for member in ["labels", "annotations"] {
        if let Some(given) = template.pointer(&format!("/metadata/{member}")) {
            metadata[member] = given.clone();
        }
    }
    Some(json!({"metadata": metadata, "spec": template.get("spec")}))
}
