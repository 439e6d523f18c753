//! The volume binder: binds claims to existing or new volumes, expands volumes whose claims request
//! more, and releases volumes without a claim.

mod binding;
mod classes;
pub(crate) mod ephemeral;
mod expansion;
mod free;
pub(crate) mod protection;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use classes::{BindingMode, ClaimRule, ReclaimPolicy, VolumeBinderConfig, VolumeClass};
pub(super) use volume::{SELECTED_NODE, fits};

use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_store::clock::later;
use kube_test_control_plane_store::store::{Change, LogEntry};

use super::client::ActorClient;
use super::pods::{claim_key, claims_of};
use super::runner::{Actor, Agenda, Incarnations, Work, identity};
use super::seeded_rng::SeededRng;
use binding::Binding;
use expansion::{Expansion, expand, is_due, waiting_since};
use free::FreeVolumes;
use volume::{Reserved, annotation, reserved};

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const VOLUMES: &str = "persistentvolumes";

/// Delay before another attempt to provision a volume.
const PROVISION_AGAIN: Duration = Duration::from_secs(15);

/// Binds and releases claims.
#[derive(Debug)]
pub(super) struct VolumeBinder {
    client: ActorClient,
    config: VolumeBinderConfig,
    rng: SeededRng,
    incarnations: Incarnations,
    free: FreeVolumes,
    /// Unbound claims by class.
    unbound: BTreeMap<String, BTreeSet<Key>>,
    /// Completion time and failed attempts of each volume being provisioned, by the claim's uid.
    making: BTreeMap<Box<str>, (Instant, u32)>,
    /// Completion time of each expansion, by the claim's uid and the requested size.
    growing: BTreeMap<(Box<str>, String), Instant>,
    /// Claims with which a pod started since their file system waits for that.
    remounted: BTreeSet<Key>,
}

impl VolumeBinder {
    pub(super) fn new(client: ActorClient, config: VolumeBinderConfig, seed: u64) -> Self {
        Self {
            client,
            config,
            rng: SeededRng::new(seed),
            incarnations: Incarnations::default(),
            free: FreeVolumes::default(),
            unbound: BTreeMap::new(),
            making: BTreeMap::new(),
            growing: BTreeMap::new(),
            remounted: BTreeSet::new(),
        }
    }

    /// Expands the volume of a claim that requests more.
    fn expand(
        &mut self,
        object: Arc<Object>,
        claim: &Value,
        agenda: &mut Agenda,
    ) -> Option<Work<()>> {
        let request = text_at(claim, "/spec/resources/requests/storage").to_owned();
        let way = Expansion::of(&self.client, claim);
        let remounted = self.remounted.contains(&object.key);
        let waits = match way {
            Expansion::Online => false,
            Expansion::WithPod => waiting_since(claim).is_some() && !remounted,
            // Told once.
            Expansion::Fails => claim.pointer("/status/conditions/0").is_some(),
            Expansion::Infeasible => claim.pointer("/status/allocatedResourceStatuses").is_some(),
        };
        if waits {
            return None;
        }
        let (rng, key) = (self.rng, &object.key);
        let nth = self.incarnations.count(&object, &self.client);
        let delay = self.config.expansion_delay;
        let whose = (object.uid.clone(), request);
        let due = *self.growing.entry(whose.clone()).or_insert_with(|| {
            let time = rng.draw(delay, &identity(key, nth), "expand", 0);
            later(Instant::now(), time)
        });
        if due > Instant::now() {
            agenda.at(key, due);
            return None;
        }
        self.growing.remove(&whose);
        Some(expand(self.client.clone(), object, way, remounted).boxed())
    }

    /// Notes that a pod starts with claims whose file systems wait for that. Also a replay shows pods, of
    /// which some started before.
    fn note_pod(&mut self, pod: &Object, agenda: &mut Agenda) {
        let pod_value = pod.value();
        let created = text_at(&pod_value, "/metadata/creationTimestamp");
        for name in claims_of(&pod_value) {
            let key = claim_key(&pod.key.namespace, &name);
            let claim = self.client.get(&key).map(|claim| claim.value());
            let since = claim.as_ref().and_then(|claim| waiting_since(claim));
            if since.is_some_and(|since| created >= since) {
                self.remounted.insert(key.clone());
                agenda.now(&key);
            }
        }
    }

    /// Binds a claim, or waits for its prerequisites.
    fn bind(&mut self, object: Arc<Object>, agenda: &mut Agenda) -> Option<Work<()>> {
        let claim = object.value();
        let client = self.client.clone();
        let bind_to = |volume: Key, claim: Value, object: Arc<Object>| Binding {
            client,
            object,
            claim,
            volume,
        };
        let wanted = text_at(&claim, "/spec/volumeName");
        if !wanted.is_empty() {
            if text_at(&claim, "/status/phase") == "Bound" {
                self.making.remove(&object.uid);
                self.no_longer_unbound(&claim, &object.key);
                if is_due(&claim) {
                    return self.expand(object, &claim, agenda);
                }
            }
            let volume = volume_key(wanted);
            return Some(bind_to(volume, claim, object).carry_out().boxed());
        }
        let class = self.config.class(&self.client, &claim);
        let waits = class.binding == BindingMode::WaitForFirstConsumer
            && annotation(&claim, SELECTED_NODE).is_empty();
        if let Some(volume) = self.find(&object.key, &object, &claim, waits) {
            return Some(bind_to(volume, claim, object).carry_out().boxed());
        }
        let class_name = text_at(&claim, "/spec/storageClassName").to_owned();
        let unbound = self.unbound.entry(class_name).or_default();
        unbound.insert(object.key.clone());
        if waits || !class.provisions {
            return None;
        }
        let (delay, failures) = self.config.provisioning(&object.key, &claim);
        let (rng, key) = (self.rng, &object.key);
        let nth = self.incarnations.count(&object, &self.client);
        let (due, failed) = self.making.entry(object.uid.clone()).or_insert_with(|| {
            let time = rng.draw(delay, &identity(key, nth), "provision", 0);
            (later(Instant::now(), time), 0)
        });
        if *due > Instant::now() {
            agenda.at(&object.key, *due);
            return None;
        }
        if *failed < failures {
            *failed += 1;
            *due = Instant::now() + PROVISION_AGAIN;
            agenda.at(&object.key, *due);
            return None;
        }
        let body = volume::provisioned(&claim, &object.key, &object, &class);
        let volume = volume_key(text_at(&body, "/metadata/name"));
        let binding = bind_to(volume, claim, object);
        Some(
            async move {
                let is_there = binding.client.get(&binding.volume).is_some();
                let collection = "/api/v1/persistentvolumes";
                if !is_there && !binding.client.create(collection, &body).await {
                    return None;
                }
                binding.carry_out().await
            }
            .boxed(),
        )
    }

    /// Returns the existing volume for a claim: the reserved one, else the smallest match. A claim
    /// that still waits for a pod gets only a reserved one.
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

    /// Processes a volume.
    fn sync_volume(&self, object: &Object) -> Option<Work<()>> {
        let volume = object.value();
        let phase = text_at(&volume, "/status/phase");
        let is_meant = !text_at(&volume, "/spec/claimRef/uid").is_empty();
        let wanted = match phase {
            _ if is_meant && !has_claim(&self.client, &volume) => "Released",
            "Bound" | "Released" => return None,
            _ if is_meant => return None,
            _ => "Available",
        };
        let status = (phase != wanted).then(|| json!({"phase": wanted}));
        let policy = text_at(&volume, "/spec/persistentVolumeReclaimPolicy");
        let deletes = wanted == "Released" && policy == "Delete";
        let client = self.client.clone();
        let (key, uid) = (object.key.clone(), object.uid.clone());
        Some(
            async move {
                if let Some(status) = status
                    && !client.patch_status(&key, &uid, &status).await
                {
                    return None;
                }
                let done = !deletes || client.delete((&key, &uid), &json!({})).await;
                done.then_some(())
            }
            .boxed(),
        )
    }

    fn note_volume(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let volume = &entry.object;
        let value = volume.value();
        if entry.change == Change::Deleted {
            self.free.remove(&volume.key);
            // Its former claim may have lost it.
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
        self.growing.retain(|(uid, _), _| *uid != claim.uid);
        self.remounted.remove(&claim.key);
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
    type Done = ();

    fn observe(&mut self, entry: &LogEntry, agenda: &mut Agenda) {
        let object = &entry.object;
        match &*object.key.storage {
            CLAIMS if entry.change == Change::Deleted => self.forget_claim(object, agenda),
            CLAIMS => {
                if waiting_since(&object.value()).is_none() {
                    self.remounted.remove(&object.key);
                }
                agenda.now(&object.key);
            }
            VOLUMES => self.note_volume(entry, agenda),
            "pods" if entry.change == Change::Added => self.note_pod(object, agenda),
            _ => {}
        }
    }

    fn act(&mut self, key: &Key, agenda: &mut Agenda) -> Option<Work<()>> {
        let object = self.client.get(key).filter(|object| !object.deleting)?;
        if &*key.storage == CLAIMS {
            self.bind(object, agenda)
        } else {
            self.sync_volume(&object)
        }
    }

    fn reset(&mut self) {
        self.free.clear();
        self.unbound.clear();
        self.remounted.clear();
    }

    fn replayed(&mut self, agenda: &mut Agenda) {
        // Volumes whose claim was deleted unnoticed.
        for volume in self.client.list(VOLUMES, "") {
            agenda.now(&volume.key);
        }
    }
}

/// Reports whether the claim of a volume exists.
pub(super) fn has_claim(client: &ActorClient, volume: &Value) -> bool {
    let uid = text_at(volume, "/spec/claimRef/uid");
    volume::claim_of(volume)
        .and_then(|claim| client.get(&claim))
        .is_some_and(|claim| *claim.uid == *uid)
}

pub(super) fn volume_key(name: &str) -> Key {
    Key::of(VOLUMES, "", name)
}
