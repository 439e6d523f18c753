//! Volumes: a volume is made for each claim and bound to it; claims in use are protected.

use std::convert::Infallible;

use http::Method;
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::client::ActorClient;
use super::pods::claims_of;
use super::runner::Actor;
use crate::kinds;
use crate::object::{Key, Object};
use crate::store::{Change, LogEntry};

const CLAIMS: &str = "persistentvolumeclaims";

/// Binds claims and releases them.
#[derive(Debug)]
pub(super) struct VolumeBinder {
    client: ActorClient,
}

impl VolumeBinder {
    pub(super) fn new(client: ActorClient) -> Self {
        Self { client }
    }

    async fn bind(&self, key: &Key, claim: &Value) -> bool {
        let text = |pointer: &str| {
            claim
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let uid = text("/metadata/uid");
        let volume = format!("pvc-{uid}");
        let storage = claim
            .pointer("/spec/resources/requests/storage")
            .unwrap_or(&Value::Null);
        let modes = claim.pointer("/spec/accessModes").unwrap_or(&Value::Null);
        let body = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": storage},
                "accessModes": modes,
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": *key.namespace,
                    "name": *key.name,
                    "uid": uid,
                },
                "hostPath": {"path": format!("/volumes/{volume}")},
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": text("/spec/storageClassName"),
                "volumeMode": text("/spec/volumeMode"),
            },
        });
        let volume_path = format!("/api/v1/persistentvolumes/{volume}");
        let path = claim_path(key);
        if self.client.get(&volume_key(&volume)).is_none()
            && !self
                .client
                .send(Method::POST, "/api/v1/persistentvolumes", &body)
                .await
        {
            return false;
        }
        let spec = json!({"metadata": {"uid": uid}, "spec": {"volumeName": volume}});
        let bound = json!({"status": {"phase": "Bound"}});
        let status = json!({"metadata": {"uid": uid}, "status": {
            "phase": "Bound",
            "accessModes": modes,
            "capacity": {"storage": storage},
        }});
        let status_path = format!("{path}/status");
        self.client
            .send(Method::PATCH, &format!("{volume_path}/status"), &bound)
            .await
            && self.client.send(Method::PATCH, &path, &spec).await
            && self.client.send(Method::PATCH, &status_path, &status).await
    }

    /// Lets a deleted claim go if no pod uses it.
    async fn release(&self, key: &Key, claim: &Object) -> bool {
        let finalizer = "kubernetes.io/pvc-protection";
        let draft = claim.draft();
        if !draft.metadata().finalizers().contains(&finalizer) || self.is_used(key) {
            return true;
        }
        let patch = json!({"metadata": {
            "uid": *claim.uid,
            "$deleteFromPrimitiveList/finalizers": [finalizer],
        }});
        self.client
            .send(Method::PATCH, &claim_path(key), &patch)
            .await
    }

    fn is_used(&self, claim: &Key) -> bool {
        let (_, pods) = self.client.server.store().list("pods", &claim.namespace);
        pods.iter().any(|pod| {
            let pod = pod.value();
            let phase = pod.pointer("/status/phase").and_then(Value::as_str);
            let finished = matches!(phase, Some("Succeeded" | "Failed"));
            !finished && claims_of(&pod).any(|name| *name == *claim.name)
        })
    }

    /// Deletes the volume of a claim that is gone.
    async fn delete_volume(&self, key: &Key) -> bool {
        let path = format!("/api/v1/persistentvolumes/{}", key.name);
        let release = json!({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["kubernetes.io/pv-protection"],
        }});
        self.client.send(Method::PATCH, &path, &release).await
            && self.client.send(Method::DELETE, &path, &json!({})).await
    }
}

impl Actor for VolumeBinder {
    type Order = Infallible;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let key = &entry.object.key;
        let deleted = entry.change == Change::Deleted;
        match key.storage {
            CLAIMS if deleted => agenda.now(&volume_key(&format!("pvc-{}", entry.object.uid))),
            CLAIMS => agenda.now(key),
            // A pod that ends may have been the last user of a deleted claim.
            "pods" if deleted || entry.object.deleting => {
                let (_, claims) = self.client.server.store().list(CLAIMS, &key.namespace);
                for claim in claims.iter().filter(|claim| claim.deleting) {
                    agenda.now(&claim.key);
                }
            }
            _ => {}
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        let done = if key.storage != CLAIMS {
            self.delete_volume(key).await
        } else if object.deleting {
            self.release(key, &object).await
        } else {
            let claim = object.value();
            let phase = claim.pointer("/status/phase").and_then(Value::as_str);
            phase == Some("Bound") || self.bind(key, &claim).await
        };
        if !done {
            agenda.retry(key);
        }
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {}
}

fn volume_key(name: &str) -> Key {
    Key {
        storage: "persistentvolumes",
        namespace: "".into(),
        name: name.into(),
    }
}

fn claim_path(key: &Key) -> String {
    kinds::by_storage(CLAIMS)
        .map(|kind| kind.object_path(&key.namespace, &key.name))
        .unwrap_or_default()
}
