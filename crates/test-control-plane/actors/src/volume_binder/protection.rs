//! Protection of claims and volumes in use: removes the server's finalizers from deleted ones after
//! their last use.
//!
//! Upstream: `pvcprotection.Controller` and `pvprotection.Controller`

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use futures::FutureExt;
use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::store::{Change, LogEntry};
use serde_json::json;

use super::{CLAIMS, VOLUMES, has_claim, volume_key};
use crate::client::ActorClient;
use crate::pods::{PodFields, claim_key, claims_of};
use crate::runner::{Actor, Agenda, Work};

/// Removes the finalizers of unused claims and volumes.
#[derive(Debug)]
pub(crate) struct VolumeProtection {
    client: ActorClient,
    fields: PodFields,
    /// The pods that mount each claim.
    users: BTreeMap<Key, BTreeSet<Key>>,
}

impl VolumeProtection {
    pub(crate) fn new(client: ActorClient) -> Self {
        Self {
            client,
            fields: PodFields::new(),
            users: BTreeMap::new(),
        }
    }

    fn unprotect(&self, object: &Object, finalizer: &str) -> Option<Work<()>> {
        let draft = object.draft();
        if !draft.metadata().finalizers().contains(&finalizer) {
            return None;
        }
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}});
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        Some(async move { client.patch(&key, &uid, patch).await.then_some(()) }.boxed())
    }

    /// Reports whether an unfinished pod on a node mounts a claim.
    fn is_mounted(&self, claim: &Key) -> bool {
        let users = self.users.get(claim).into_iter().flatten();
        users
            .filter_map(|key| self.client.get(key))
            .any(|pod| !self.fields.node(&pod).is_empty() && !self.fields.is_over(&pod))
    }

    /// Reports whether a volume belongs to an existing claim.
    fn is_claimed(&self, volume: &Object) -> bool {
        let volume = volume.value();
        text_at(&volume, "/status/phase") == "Bound" && has_claim(&self.client, &volume)
    }

    fn note_pod(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let pod = &entry.object;
        let gone = entry.change == Change::Deleted;
        let now_over = self.fields.is_over(pod);
        if entry.change == Change::Modified && !now_over {
            return;
        }
        let value = pod.value();
        for name in claims_of(&value) {
            let claim = claim_key(&pod.key.namespace, &name);
            let users = self.users.entry(claim.clone()).or_default();
            if gone {
                users.remove(&pod.key);
            } else {
                users.insert(pod.key.clone());
            }
            if users.is_empty() {
                self.users.remove(&claim);
            }
            // It may have been the last user of a deleted claim.
            if (gone || now_over) && self.client.get(&claim).is_some_and(|c| c.deleting) {
                agenda.now(&claim);
            }
        }
    }
}

impl Actor for VolumeProtection {
    type Order = Infallible;
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match &*object.key.storage {
            "pods" => self.note_pod(entry, agenda),
            CLAIMS if entry.change == Change::Deleted => {
                let claim = object.value();
                let volume = text_at(&claim, "/spec/volumeName");
                if !volume.is_empty() {
                    agenda.now(&volume_key(volume));
                }
            }
            CLAIMS | VOLUMES if object.deleting => agenda.now(&object.key),
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, _: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key).filter(|object| object.deleting)?;
        if &*key.storage == CLAIMS {
            (!self.is_mounted(key))
                .then(|| self.unprotect(&object, "kubernetes.io/pvc-protection"))?
        } else {
            (!self.is_claimed(&object))
                .then(|| self.unprotect(&object, "kubernetes.io/pv-protection"))?
        }
    }

    fn reset(&mut self) {
        self.users.clear();
    }
}
