//! Objects by the set that they concern.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::names::{claim_prefixes, split};
use super::stored::StoredObject;
use crate::model::{Claim, Metadata, Pod, Revision, Set};

/// Sets by the uids and names that relate other objects to them.
pub(super) struct Index {
    uids: BTreeSet<String>,
    /// Uids by name.
    names: BTreeMap<String, String>,
    /// Uids by the names of claims without their ordinals.
    claims: BTreeMap<String, Vec<String>>,
    /// Uids by the names of the claims that templates or pods mount.
    mounted: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

impl Index {
    pub(super) fn of(sets: &[StoredObject<Set>]) -> Self {
        let (mut names, mut claims) = (BTreeMap::new(), BTreeMap::new());
        let mut mounted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for set in sets {
            let metadata = &set.object.metadata;
            for claim in set.object.spec.mounted_claims() {
                let uids = mounted.entry(claim.to_owned()).or_default();
                uids.insert(metadata.uid.clone());
            }
            names.insert(metadata.name.clone(), metadata.uid.clone());
            for prefix in claim_prefixes(&set.object) {
                let uids: &mut Vec<String> = claims.entry(prefix).or_default();
                uids.push(metadata.uid.clone());
            }
        }
        let uids = names.values().cloned().collect();
        Self {
            uids,
            names,
            claims,
            mounted: RefCell::new(mounted),
        }
    }

    /// Reports whether a set has this uid.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// Reports whether a pod with this name may be one of a set's.
    pub(super) fn has_pod(&self, name: &str) -> bool {
        split(name).is_some_and(|(set, _)| self.names.contains_key(set))
    }

    /// The sets that a pod concerns: the one that controls it, and the one of its name. Notes that
    /// these sets concern the claims that the pod mounts.
    pub(super) fn of_pod(&self, pod: &Pod) -> Vec<String> {
        let owner = self.owner(&pod.metadata);
        let set = split(&pod.metadata.name).and_then(|(set, _)| self.names.get(set));
        let mut sets: Vec<String> = owner.into_iter().chain(set.cloned()).collect();
        sets.dedup();
        if !sets.is_empty() {
            let mut mounted = self.mounted.borrow_mut();
            for claim in pod.claims() {
                let uids = mounted.entry(claim.to_owned()).or_default();
                uids.extend(sets.iter().cloned());
            }
        }
        sets
    }

    /// The sets that a claim concerns: those with a template for its name, and those whose template or
    /// pods mount it. The pods come first.
    pub(super) fn of_claim(&self, claim: &Claim) -> Vec<String> {
        let name = &claim.metadata.name;
        let named = split(name).and_then(|(prefix, _)| self.claims.get(prefix));
        let mounted = self.mounted.borrow();
        let mounted = mounted.get(name).into_iter().flatten();
        let sets: BTreeSet<&String> = named.into_iter().flatten().chain(mounted).collect();
        sets.into_iter().cloned().collect()
    }

    /// The sets that a revision concerns: the one that controls it; of an orphan, the one of its name.
    pub(super) fn of_revision(&self, revision: &Revision) -> Vec<String> {
        if revision.metadata.controller().is_some() {
            return self.owner(&revision.metadata).into_iter().collect();
        }
        let set = split(&revision.metadata.name).and_then(|(set, _)| self.names.get(set));
        set.cloned().into_iter().collect()
    }

    fn owner(&self, metadata: &Metadata) -> Option<String> {
        let owner = metadata.controller()?;
        self.uids.get(&owner.uid).cloned()
    }
}

/// An object of a group.
pub(super) trait Member {
    fn metadata(&self) -> &Metadata;

    /// Reports whether its state depends on nodes.
    fn needs_nodes(&self) -> bool {
        false
    }

    /// The volume whose end its state depends on.
    fn needs_volume(&self) -> Option<&str> {
        None
    }
}

impl Member for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn needs_nodes(&self) -> bool {
        let is_deleted = self.metadata.deletion_timestamp.is_some();
        self.spec.node_name.is_empty() || is_deleted || !self.is_ready()
    }
}

impl Member for Claim {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn needs_volume(&self) -> Option<&str> {
        let volume = self.spec.volume_name.as_str();
        let is_deleted = self.metadata.deletion_timestamp.is_some();
        (is_deleted && !volume.is_empty()).then_some(volume)
    }
}

impl Member for Revision {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// An object and the uids of the sets that it concerns.
pub(super) struct GroupedObject {
    sets: Vec<String>,
    uid: String,
    needs_nodes: bool,
    volume: Option<String>,
    text: Arc<str>,
}

impl GroupedObject {
    pub(super) fn new(object: &impl Member, sets: Vec<String>, text: &str) -> Self {
        Self {
            sets,
            uid: object.metadata().uid.clone(),
            needs_nodes: object.needs_nodes(),
            volume: object.needs_volume().map(str::to_owned),
            text: text.into(),
        }
    }
}

/// The objects of one kind, by the uids of the sets that they concern.
#[derive(Default)]
pub(super) struct Groups {
    by_set: BTreeMap<String, Vec<Arc<str>>>,
    uids: BTreeSet<String>,
    need_nodes: bool,
    volumes: BTreeSet<String>,
}

impl Groups {
    /// The number of objects.
    pub(super) fn len(&self) -> usize {
        self.uids.len()
    }

    /// Reports whether an object has this uid.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// Reports whether the state of an object depends on nodes.
    pub(super) fn need_nodes(&self) -> bool {
        self.need_nodes
    }

    /// Names of the volumes whose ends the states of the objects depend on.
    pub(super) fn volumes(&self) -> impl Iterator<Item = &str> {
        self.volumes.iter().map(String::as_str)
    }

    /// The objects that concern a set, as the server sent them.
    pub(super) fn texts(&self, set: &str) -> impl Iterator<Item = &Arc<str>> {
        self.by_set.get(set).into_iter().flatten()
    }
}

impl Extend<GroupedObject> for Groups {
    fn extend<I: IntoIterator<Item = GroupedObject>>(&mut self, objects: I) {
        for object in objects {
            for set in object.sets {
                let texts = self.by_set.entry(set).or_default();
                texts.push(Arc::clone(&object.text));
            }
            self.uids.insert(object.uid);
            self.need_nodes |= object.needs_nodes;
            self.volumes.extend(object.volume);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_return_their_texts() {
        let mut groups = Groups::default();
        let texts: Vec<String> = (0..3).map(|i| format!("pod {i} of many")).collect();
        groups.extend(texts.iter().map(|text| GroupedObject {
            sets: vec!["uid".to_owned()],
            uid: text.clone(),
            needs_nodes: false,
            volume: None,
            text: text.as_str().into(),
        }));
        assert!(groups.texts("uid").map(|text| &**text).eq(&texts));
        assert_eq!(groups.texts("other").count(), 0);
        assert_eq!(groups.len(), 3);
    }
}
