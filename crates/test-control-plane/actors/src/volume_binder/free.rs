//! Unclaimed volumes.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::members::text_at;
use kube_test_control_plane_api::object::Key;
use serde_json::Value;

use super::volume;

/// Unclaimed volumes by class and size, and volumes reserved for a claim.
#[derive(Debug, Default)]
pub(super) struct FreeVolumes {
    by_class: BTreeMap<String, BTreeSet<(i64, Key)>>,
    /// By claim.
    reserved: BTreeMap<Key, Key>,
    /// Index entries of each volume, used for its removal.
    known: BTreeMap<Key, Known>,
}

#[derive(Debug)]
struct Known {
    class: String,
    size: i64,
    claim: Option<Key>,
}

impl FreeVolumes {
    /// Adds or updates a volume.
    pub(super) fn insert(&mut self, key: &Key, value: &Value) {
        self.remove(key);
        let known = Known {
            class: text_at(value, "/spec/storageClassName").to_owned(),
            size: volume::size(value, "/spec/capacity/storage"),
            claim: volume::claim_of(value),
        };
        if let Some(claim) = &known.claim {
            self.reserved.insert(claim.clone(), key.clone());
        } else {
            let class = self.by_class.entry(known.class.clone()).or_default();
            class.insert((known.size, key.clone()));
        }
        self.known.insert(key.clone(), known);
    }

    /// Removes a volume.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(known) = self.known.remove(key) else {
            return;
        };
        if let Some(claim) = &known.claim {
            self.reserved.remove(claim);
        }
        if let Some(class) = self.by_class.get_mut(&known.class) {
            class.remove(&(known.size, key.clone()));
        }
    }

    /// Returns the volume reserved for a claim.
    pub(super) fn reserved(&self, claim: &Key) -> Option<&Key> {
        self.reserved.get(claim)
    }

    /// Returns the volumes of a class with at least this size, the smallest first.
    pub(super) fn at_least(&self, class: &str, size: i64) -> impl Iterator<Item = &Key> {
        let first = Key::of("", "", "");
        let class = self.by_class.get(class).into_iter();
        class
            .flat_map(move |volumes| volumes.range((size, first.clone())..))
            .map(|(_, key)| key)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
