//! Volumes: claims are bound to volumes that there are, or volumes are made for them; claims and
//! volumes in use are kept from going away; volumes without their claim are released.

mod classes;
mod free;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use classes::{BindingMode, ClaimRule, ReclaimPolicy, VolumeBinderConfig, VolumeClass};
pub(super) use volume::{SELECTED_NODE, fits};

use super::agenda::Agenda;
use super::client::{ActorClient, path};
use super::delay::Dice;
use super::pods::{PodFields, claim_key, claims_of};
use super::runner::Actor;
use crate::clock::later;
use crate::members::text_at;
use crate::object::{Key, Object};
use crate::store::{Change, LogEntry};
use free::FreeVolumes;
use volume::{Reserved, annotation, reserved};

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

/// How long to wait before another try to make a volume.
const PROVISION_AGAIN: Duration = Duration::from_secs(15);

/// Binds claims and releases them.
#[derive(Debug)]
pub(super) struct VolumeBinder {
    client: ActorClient,
    config: VolumeBinderConfig,
    dice: Dice,
    fields: PodFields,
    /// The pods that mount each claim.
    users: BTreeMap<Key, BTreeSet<Key>>,
    free: FreeVolumes,
    /// Claims without a volume, by class.
    unbound: BTreeMap<String, BTreeSet<Key>>,
    /// By the uid of a claim: when its volume will have been made, and how many tries have failed.
    making: BTreeMap<Box<str>, (Instant, u32)>,
}

impl VolumeBinder {
    pub(super) fn new(client: ActorClient, config: VolumeBinderConfig, seed: u64) -> Self {
        Self {
            client,
            config,
            dice: Dice::new(seed),
            fields: PodFields::new(),
            users: BTreeMap::new(),
            free: FreeVolumes::default(),
            unbound: BTreeMap::new(),
            making: BTreeMap::new(),
        }
    }

    /// Binds a claim, or waits for what it lacks; whether nothing went wrong.
    async fn bind(&mut self, key: &Key, object: &Object, agenda: &mut Agenda) -> bool {
        let claim = object.value();
        let wanted = text_at(&claim, "/spec/volumeName");
        if !wanted.is_empty() {
            return self.bind_to(&volume_key(wanted), key, object, &claim).await;
        }
        let class = self.config.class(&self.client, &claim);
        let waits = class.binding == BindingMode::WaitForFirstConsumer
            && annotation(&claim, SELECTED_NODE).is_empty();
        if let Some(volume) = self.find(key, object, &claim, waits) {
            return self.bind_to(&volume, key, object, &claim).await;
        }
        let class_name = text_at(&claim, "/spec/storageClassName").to_owned();
        let unbound = self.unbound.entry(class_name).or_default();
        unbound.insert(key.clone());
        if waits || !class.provisions {
            return true;
        }
        let (delay, failures) = self.config.fate(key, &claim);
        let dice = self.dice;
        let (due, failed) = self.making.entry(object.uid.clone()).or_insert_with(|| {
            let time = dice.draw(delay, &object.uid, "provision", 0);
            (later(Instant::now(), time), 0)
        });
        if *due > Instant::now() {
            agenda.at(key, *due);
            return true;
        }
        if *failed < failures {
            *failed += 1;
            *due = Instant::now() + PROVISION_AGAIN;
            agenda.at(key, *due);
            return true;
        }
        let body = volume::provisioned(&claim, key, object, &class);
        let volume = volume_key(text_at(&body, "/metadata/name"));
        let exists = self.client.get(&volume).is_some();
        let collection = "/api/v1/persistentvolumes";
        (exists || self.client.send(Method::POST, collection, &body).await)
            && self.bind_to(&volume, key, object, &claim).await
    }

    /// The volume for a claim among those that there are: the one that is kept for it, else the
    /// smallest that fits, unless the claim is still waiting for a pod.
    fn find(&self, key: &Key, object: &Object, claim: &Value, waits: bool) -> Option<Key> {
        let volume = |key: &Key| {
            let volume = self.client.get(key).filter(|volume| !volume.deleting);
            volume.map(|volume| volume.value())
        };
        let kept = self.free.reserved(key);
        let is_ours = |kept: &&Key| {
            volume(kept).is_some_and(|v| reserved(&v, key, &object.uid) == Reserved::Ours)
        };
        if let Some(kept) = kept.filter(is_ours) {
            return Some(kept.clone());
        }
        let class = text_at(claim, "/spec/storageClassName");
        let size = volume::size(claim, "/spec/resources/requests/storage");
        let mut candidates = self.free.at_least(class, size).filter(|_| !waits);
        let found = candidates.find(|key| volume(key).is_some_and(|v| fits(&v, claim)));
        found.cloned()
    }

    /// Makes claim and volume name each other.
    async fn bind_to(&mut self, volume: &Key, key: &Key, object: &Object, claim: &Value) -> bool {
        let was_bound = text_at(claim, "/status/phase") == "Bound";
        let Some(found) = self.client.get(volume) else {
            return !was_bound || self.lose(key, object).await;
        };
        let value = found.value();
        let uid = &*object.uid;
        let volume_patch = match reserved(&value, key, uid) {
            Reserved::Other => return !was_bound || self.lose(key, object).await,
            Reserved::Ours if text_at(&value, "/spec/claimRef/uid") == uid => None,
            Reserved::Ours => Some(json!({"spec": {"claimRef": {"uid": uid}}})),
            Reserved::No => Some(json!({
                "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                "spec": {"claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": *key.namespace,
                    "name": *key.name,
                    "uid": uid,
                    "resourceVersion": object.resource_version.to_string(),
                }},
            })),
        };
        if was_bound {
            return true;
        }
        let mut annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
        if text_at(claim, "/spec/volumeName").is_empty() {
            annotations["pv.kubernetes.io/bound-by-controller"] = json!("yes");
        }
        let claim_patch = json!({
            "metadata": {"annotations": annotations},
            "spec": {"volumeName": *volume.name},
        });
        let status = json!({
            "phase": "Bound",
            "accessModes": value.pointer("/spec/accessModes"),
            "capacity": value.pointer("/spec/capacity"),
        });
        if let Some(patch) = volume_patch
            && !self.client.patch(volume, &found.uid, patch).await
        {
            return false;
        }
        let bound = json!({"phase": "Bound"});
        self.client.patch_status(volume, &found.uid, &bound).await
            && self.client.patch(key, uid, claim_patch).await
            && self.client.patch_status(key, uid, &status).await
    }

    /// The volume of a bound claim is gone.
    async fn lose(&self, key: &Key, object: &Object) -> bool {
        let lost = json!({"phase": "Lost"});
        self.client.patch_status(key, &object.uid, &lost).await
    }

    /// Lets a deleted claim go if no pod uses it.
    async fn release(&self, key: &Key, claim: &Object) -> bool {
        if self.is_used(key) {
            return true;
        }
        self.unprotect(key, claim, "kubernetes.io/pvc-protection")
            .await
    }

    async fn unprotect(&self, key: &Key, object: &Object, finalizer: &str) -> bool {
        let draft = object.draft();
        if !draft.metadata().finalizers().contains(&finalizer) {
            return true;
        }
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}});
        self.client.patch(key, &object.uid, patch).await
    }

    /// Whether a pod that is on a node and hasn't ended mounts a claim.
    fn is_used(&self, claim: &Key) -> bool {
        let users = self.users.get(claim).into_iter().flatten();
        users
            .filter_map(|key| self.client.get(key))
            .any(|pod| !self.fields.node(&pod).is_empty() && !self.fields.is_over(&pod))
    }

    /// Looks after a volume; whether nothing went wrong.
    async fn look_after(&self, key: &Key, object: &Object) -> bool {
        let volume = object.value();
        let phase = text_at(&volume, "/status/phase");
        if object.deleting {
            let in_use = phase == "Bound" && self.has_claim(&volume);
            return in_use
                || self
                    .unprotect(key, object, "kubernetes.io/pv-protection")
                    .await;
        }
        let is_meant = !text_at(&volume, "/spec/claimRef/uid").is_empty();
        let wanted = match phase {
            _ if is_meant && !self.has_claim(&volume) => "Released",
            "Bound" | "Released" => return true,
            _ if is_meant => return true,
            _ => "Available",
        };
        if phase != wanted {
            let status = json!({"phase": wanted});
            if !self.client.patch_status(key, &object.uid, &status).await {
                return false;
            }
        }
        let policy = text_at(&volume, "/spec/persistentVolumeReclaimPolicy");
        if wanted != "Released" || policy != "Delete" {
            return true;
        }
        self.client
            .send(Method::DELETE, &path(key), &json!({}))
            .await
    }

    /// Whether the claim is there that a volume is for.
    fn has_claim(&self, volume: &Value) -> bool {
        let uid = text_at(volume, "/spec/claimRef/uid");
        volume::claim_of(volume)
            .and_then(|claim| self.client.get(&claim))
            .is_some_and(|claim| *claim.uid == *uid)
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
            // It may have been the last user of a claim that is deleted.
            if (gone || now_over) && self.client.get(&claim).is_some_and(|c| c.deleting) {
                agenda.now(&claim);
            }
        }
    }

    fn note_volume(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let volume = &entry.object;
        let value = volume.value();
        if entry.change == Change::Deleted {
            self.free.remove(&volume.key);
            // The claim that had it may have lost it.
            if let Some(claim) = volume::claim_of(&value) {
                agenda.now(&claim);
            }
            return;
        }
        let phase = text_at(&value, "/status/phase");
        if matches!(phase, "Bound" | "Released") || volume.deleting {
            self.free.remove(&volume.key);
        } else {
            self.free.insert(&volume.key, &value);
            if let Some(claim) = volume::claim_of(&value) {
                agenda.now(&claim);
            } else if phase == "Available" {
                let class = text_at(&value, "/spec/storageClassName");
                for claim in self.unbound.get(class).into_iter().flatten() {
                    agenda.now(claim);
                }
            }
        }
        agenda.now(&volume.key);
    }

    fn forget_claim(&mut self, claim: &Object, agenda: &mut Agenda) {
        self.making.remove(&claim.uid);
        let value = claim.value();
        self.no_longer_unbound(&value, &claim.key);
        let volume = text_at(&value, "/spec/volumeName");
        if !volume.is_empty() {
            agenda.now(&volume_key(volume));
        }
    }

    fn no_longer_unbound(&mut self, claim: &Value, key: &Key) {
        let class = text_at(claim, "/spec/storageClassName");
        if let Some(unbound) = self.unbound.get_mut(class) {
            unbound.remove(key);
        }
    }
}

impl Actor for VolumeBinder {
    type Order = Infallible;

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match object.key.storage {
            CLAIMS if entry.change == Change::Deleted => self.forget_claim(object, agenda),
            CLAIMS => agenda.now(&object.key),
            VOLUMES => self.note_volume(entry, agenda),
            "pods" => self.note_pod(entry, agenda),
            _ => {}
        }
    }

    async fn act(&mut self, key: &Key, agenda: &mut Agenda) {
        let Some(object) = self.client.get(key) else {
            return;
        };
        let done = if key.storage != CLAIMS {
            self.look_after(key, &object).await
        } else if object.deleting {
            self.release(key, &object).await
        } else {
            let done = self.bind(key, &object, agenda).await;
            if let Some(claim) = self.client.get(key).map(|claim| claim.value())
                && text_at(&claim, "/status/phase") == "Bound"
            {
                self.making.remove(&object.uid);
                self.no_longer_unbound(&claim, key);
            }
            done
        };
        if !done {
            agenda.retry(key);
        }
    }

    fn obey(&mut self, order: Infallible, _: &mut Agenda) {
        match order {}
    }

    fn begin_again(&mut self) {
        self.users.clear();
        self.free.clear();
        self.unbound.clear();
    }

    fn told_again(&mut self, agenda: &mut Agenda) {
        // Volumes whose claim went away unnoticed.
        for volume in self.client.list(VOLUMES, "") {
            agenda.now(&volume.key);
        }
    }
}

fn volume_key(name: &str) -> Key {
    Key {
        storage: VOLUMES,
        namespace: "".into(),
        name: name.into(),
    }
}
