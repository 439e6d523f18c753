//! The objects of a namespace that concern some sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use statefulset_client::feature_gates::FeatureGates;

use super::evidence::Evidence;
use super::groups::Groups;
use super::snapshot::Snapshot;
use super::stored::StoredObject;
use crate::model::{Claim, Pod, Set};

/// The objects of a namespace that concern some sets. The objects of one set are decoded at a time.
pub(crate) struct Namespace {
    pub(super) name: String,
    pub(super) now: Timestamp,
    pub(super) gates: FeatureGates,
    pub(super) sets: Vec<StoredObject<Set>>,
    pub(super) pods: Groups,
    pub(super) claims: Groups,
    pub(super) revisions: Groups,
    pub(super) evidence: Arc<Evidence>,
}

impl Namespace {
    /// A namespace without sets.
    pub(super) fn empty(now: Timestamp) -> Self {
        Self {
            name: String::new(),
            now,
            gates: FeatureGates::default(),
            sets: Vec::new(),
            pods: Groups::default(),
            claims: Groups::default(),
            revisions: Groups::default(),
            evidence: Arc::default(),
        }
    }

    /// The number of pods.
    pub(crate) fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// A snapshot of each set.
    pub(crate) fn into_snapshots(mut self) -> impl Iterator<Item = Snapshot> {
        let sets = std::mem::take(&mut self.sets);
        sets.into_iter().map(move |set| self.snapshot(Some(set)))
    }

    /// A snapshot of the first set.
    pub(crate) fn into_snapshot(mut self) -> Snapshot {
        let set = (!self.sets.is_empty()).then(|| self.sets.swap_remove(0));
        self.snapshot(set)
    }

    /// A snapshot of the objects with names of a set that doesn't exist.
    pub(crate) fn into_snapshot_without_set(mut self) -> Snapshot {
        self.sets.clear();
        self.snapshot(None)
    }

    fn snapshot(&self, set: Option<StoredObject<Set>>) -> Snapshot {
        let uid = set.as_ref().map_or("", |set| &set.object.metadata.uid);
        let pods = objects(&self.pods, uid, |pod: &Pod| &pod.metadata.name);
        let claims = objects(&self.claims, uid, |claim: &Claim| &claim.metadata.name);
        let revisions = self
            .revisions
            .texts(uid)
            .filter_map(StoredObject::decoded)
            .collect();
        Snapshot {
            namespace: self.name.clone(),
            now: self.now,
            gates: self.gates,
            set,
            pods,
            claims,
            revisions,
            evidence: Arc::clone(&self.evidence),
        }
    }
}

/// The objects of a set, by name.
fn objects<T: DeserializeOwned>(
    groups: &Groups,
    set: &str,
    name: impl Fn(&T) -> &String,
) -> BTreeMap<String, StoredObject<T>> {
    // Every text has been decoded before.
    let objects = groups.texts(set).filter_map(StoredObject::decoded);
    objects
        .map(|stored: StoredObject<T>| (name(&stored.object).clone(), stored))
        .collect()
}
