//! A set and the objects that concern it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use statefulset_client::feature_gates::FeatureGates;

use super::evidence::Evidence;
use super::names::{claim_prefixes, split};
use super::stored::StoredObject;
use crate::decide::Objects;
use crate::model::{Budget, Claim, Event, ManagedSet, Node, Pod, Revision, Set, Volume};
use crate::server::{Unreadable, decode};

/// Field manager of the built-in controller.
const BUILT_IN: &str = "kube-controller-manager";

/// A set and the objects that concern it.
pub(crate) struct Snapshot {
    pub(crate) namespace: String,
    pub(crate) now: Timestamp,
    /// The gates of the server's version.
    pub(crate) gates: FeatureGates,
    /// The set; none if it doesn't exist.
    pub(crate) set: Option<StoredObject<Set>>,
    /// The pods that the set controls, and those with a name that it wants.
    pub(super) pods: BTreeMap<String, StoredObject<Pod>>,
    /// The claims with a name of one of the set's.
    pub(super) claims: BTreeMap<String, StoredObject<Claim>>,
    /// The revisions that the set controls, and orphans with such a name.
    pub(super) revisions: Vec<StoredObject<Revision>>,
    pub(super) evidence: Arc<Evidence>,
}

impl Snapshot {
    /// Reports whether the built-in controller wrote the set's status last.
    pub(crate) fn is_built_in(&self) -> bool {
        let managed = self.set.as_ref().map(|set| decode::<ManagedSet>(&set.text));
        let managed = managed.and_then(Result::ok);
        managed.is_some_and(|managed| managed.status_manager() == Some(BUILT_IN))
    }

    /// The gates of the set's controller: those of opt-ins are unknown, so they are on unless the
    /// built-in controller serves the set.
    pub(crate) fn gates_of_controller(&self) -> FeatureGates {
        if self.is_built_in() {
            self.gates
        } else {
            self.gates.with_opt_ins()
        }
    }

    /// Nodes, read only if a pod needs one.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.evidence.nodes
    }

    /// An object that can't be decoded, of the set or with the name of one of its objects.
    pub(crate) fn unreadable(&self, set: &Set) -> Option<&Unreadable> {
        let (uid, name) = (&set.metadata.uid, &set.metadata.name);
        let claims: Vec<String> = claim_prefixes(set).collect();
        self.evidence.unreadable.iter().find(|object| {
            let prefix = split(&object.name).map_or("", |(prefix, _)| prefix);
            object.owners.contains(uid)
                || prefix == name
                || claims.iter().any(|claim| claim == prefix)
        })
    }

    /// A pod by its name.
    pub(crate) fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods.get(name).map(|pod| &pod.object)
    }

    /// A claim by its name.
    pub(crate) fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.get(name).map(|claim| &claim.object)
    }

    /// The pods that the set controls, and those with a name that it wants.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().map(|pod| &pod.object)
    }

    /// The running pods that use a claim.
    pub(crate) fn pods_with<'a>(&'a self, claim: &'a str) -> impl Iterator<Item = &'a Pod> {
        let pods = self.pods().filter(|pod| !pod.is_finished());
        pods.filter(move |pod| pod.mounts(claim))
    }

    /// The claims of the set.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values().map(|claim| &claim.object)
    }

    /// A node by its name.
    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes().iter().find(|node| node.metadata.name == name)
    }

    /// The pods that a set controls.
    pub(crate) fn pods_of<'a>(&'a self, set: &'a Set) -> impl Iterator<Item = &'a Pod> {
        let pods = self.pods.values().map(|pod| &pod.object);
        pods.filter(|pod| pod.metadata.is_controlled_by(&set.metadata.uid))
    }

    /// The budgets that select one of the set's pods.
    pub(crate) fn budgets_of<'a>(&'a self, set: &'a Set) -> impl Iterator<Item = &'a Budget> {
        let budgets = self.evidence.budgets.iter();
        budgets.filter(|budget| {
            let mut pods = self.pods_of(set);
            pods.any(|pod| budget.selects(&pod.metadata.labels))
        })
    }

    /// The revisions of a set, oldest first.
    pub(crate) fn revisions_of(&self, set: &Set) -> Vec<&Revision> {
        let own = self.revisions.iter().map(|stored| &stored.object);
        let own = own.filter(|it| it.metadata.is_controlled_by(&set.metadata.uid));
        let mut revisions: Vec<&Revision> = own.collect();
        revisions.sort_by_key(|revision| revision.revision);
        revisions
    }

    /// The warnings about an object, the latest first.
    pub(crate) fn warnings(&self, uid: &str) -> &[Event] {
        let warnings = &self.evidence.events.warnings;
        warnings.get(uid).map_or(&[], Vec::as_slice)
    }

    /// The events about an object that are no warnings, the latest first.
    pub(crate) fn notices(&self, uid: &str) -> &[Event] {
        let notices = &self.evidence.events.notices;
        notices.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Reports whether any event is about the object.
    pub(crate) fn has_events(&self, uid: &str) -> bool {
        self.evidence.events.seen.contains(uid)
    }

    /// The warnings about earlier pods with a name, the latest first.
    pub(crate) fn earlier_warnings(&self, pod: &str) -> &[Event] {
        let earlier = &self.evidence.events.earlier;
        earlier.get(pod).map_or(&[], Vec::as_slice)
    }

    /// Names of pods whose earlier pods have warnings.
    pub(crate) fn failed_names(&self) -> impl Iterator<Item = &str> {
        self.evidence.events.earlier_names().into_iter()
    }

    /// A volume of a claim that is being deleted.
    pub(crate) fn volume(&self, name: &str) -> Option<&Volume> {
        self.evidence.volumes.get(name)
    }

    /// The objects on which the controller decides about the set.
    pub(crate) fn objects<'a>(&'a self, set: &'a StoredObject<Set>) -> Objects<'a> {
        Objects {
            set: &set.text,
            ..self.dependents()
        }
    }

    /// The objects besides the set itself.
    pub(crate) fn dependents(&self) -> Objects<'_> {
        Objects {
            set: "",
            pods: self.pods.values().map(|pod| &*pod.text).collect(),
            claims: self.claims.values().map(|claim| &*claim.text).collect(),
            revisions: self.revisions.iter().map(|it| &*it.text).collect(),
        }
    }
}
