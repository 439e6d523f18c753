//! Writes of other programs, from the changes that the watches show.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::cache::informer::EventHandler;
use statefulset_client::clock::Clock;
use statefulset_client::workqueue::WorkQueue;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::TrackedResource;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::{POD_INDEX_LABEL, POD_NAME_LABEL, Pod, split_name};
use statefulset_controller_util::stateful_set::{KIND, StatefulSet};

use super::observable_write::{ObservableWrite, Verb, owners};
use super::open_comparisons::OpenComparisons;
use super::snapshot::Before;

/// Claims whose set is not cached yet; more are forgotten.
const STRAY_CLAIMS_MAX: usize = 1000;

/// The open comparisons of all sets.
#[derive(Default)]
pub(super) struct ComparisonsBySet(Mutex<BTreeMap<ObjectKey, OpenComparisons>>);

impl ComparisonsBySet {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, OpenComparisons>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records writes and adds their sets to the queue.
#[derive(Clone)]
pub(super) struct Observer {
    pub(super) comparisons: Arc<ComparisonsBySet>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) sets: Arc<Indexer<StatefulSet>>,
    pub(super) clock: Arc<dyn Clock>,
    /// Changes of claims that came before their set.
    pub(super) strays: Arc<Mutex<Vec<Stray>>>,
}

/// A change of a claim that came before its set.
pub(super) struct Stray {
    namespace: Box<str>,
    write: ObservableWrite,
    before: Before,
    version: Box<str>,
    at: Timestamp,
}

impl Observer {
    fn see(
        &self,
        set: ObjectKey,
        write: ObservableWrite,
        before: Before,
        version: &str,
        at: Timestamp,
    ) {
        let mut comparisons = self.comparisons.lock();
        let open = comparisons.entry(set.clone()).or_default();
        open.see(write, before, version, at);
        drop(comparisons);
        self.queue.add(set);
    }

    /// Records a write to an object, if a set controls it.
    fn see_of(
        &self,
        (namespace, version): (&str, &str),
        controller: Option<&OwnerReference>,
        write: ObservableWrite,
        before: Before,
    ) {
        if let Some(owner) = controller.filter(|owner| *owner.kind == *KIND) {
            let set = ObjectKey::new(namespace, &owner.name);
            self.see(set, write, before, version, self.clock.now());
        }
    }

    /// Records a write to a claim, whose set shows in its name.
    fn see_claim(&self, claim: &Claim, verb: Verb, before: Before) {
        let (namespace, name) = (&*claim.namespace, &*claim.name);
        let resource = TrackedResource::PersistentVolumeClaims;
        let write = ObservableWrite::new(verb, resource, name).with(owners(claim));
        let (version, at) = (&claim.resource_version, self.clock.now());
        if let Some(set) = self.set_of_claim(namespace, name) {
            self.see(set, write, before, version, at);
            return;
        }
        let mut strays = self.strays.lock().unwrap_or_else(PoisonError::into_inner);
        if strays.len() >= STRAY_CLAIMS_MAX {
            strays.remove(0);
        }
        strays.push(Stray {
            namespace: namespace.into(),
            write,
            before,
            version: version.clone(),
            at,
        });
    }

    /// The cached set with a template for a claim of this name.
    fn set_of_claim(&self, namespace: &str, claim: &str) -> Option<ObjectKey> {
        let (prefix, _) = split_name(claim)?;
        prefix.match_indices('-').find_map(|(dash, _)| {
            let (template, set) = (prefix.get(..dash)?, prefix.get(dash + 1..)?);
            let set = self.sets.get(namespace, set)?;
            let mut templates = set.spec.claim_templates.iter();
            templates
                .any(|known| *known.name == *template)
                .then(|| set.key())
        })
    }
}

impl EventHandler<StatefulSet> for Observer {
    /// A new set may be that of earlier claims.
    fn on_add(&self, set: &Arc<StatefulSet>, _in_initial_list: bool) {
        let mut strays = self.strays.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, others) = std::mem::take(&mut *strays).into_iter().partition(|stray| {
            let found = self.set_of_claim(&stray.namespace, &stray.write.name);
            *stray.namespace == *set.namespace() && found.is_some_and(|key| key == set.key())
        });
        *strays = others;
        drop(strays);
        let own: Vec<Stray> = own;
        for stray in own {
            let Stray {
                write,
                before,
                version,
                at,
                ..
            } = stray;
            self.see(set.key(), write, before, &version, at);
        }
    }

    fn on_update(&self, _old: &Arc<StatefulSet>, _new: &Arc<StatefulSet>) {}

    fn on_delete(&self, set: &Arc<StatefulSet>, _final_state_unknown: bool) {
        self.comparisons.lock().remove(&set.key());
    }
}

fn pod_write(verb: Verb, pod: &Pod) -> ObservableWrite {
    ObservableWrite::new(verb, TrackedResource::Pods, &pod.name)
}

impl EventHandler<Pod> for Observer {
    fn on_add(&self, pod: &Arc<Pod>, in_initial_list: bool) {
        if in_initial_list {
            return;
        }
        let write = pod_write(Verb::Create, pod).with(pod.revision().to_owned());
        let controller = pod.controller.as_deref();
        self.see_of(
            (&pod.namespace, &pod.resource_version),
            controller,
            write,
            Before::Pod(None),
        );
    }

    fn on_update(&self, old: &Arc<Pod>, new: &Arc<Pod>) {
        if old.uid != new.uid {
            self.on_delete(old, true);
            self.on_add(new, false);
            return;
        }
        let before = || Before::Pod(Some(Arc::clone(old)));
        let place = (&*new.namespace, &*new.resource_version);
        let (owner, next_owner) = (old.controller.as_deref(), new.controller.as_deref());
        if owner != next_owner {
            let changed = owner.or(next_owner);
            self.see_of(place, changed, pod_write(Verb::Change, new), before());
        } else if [POD_NAME_LABEL, POD_INDEX_LABEL]
            .iter()
            .any(|label| old.labels.get(label) != new.labels.get(label))
        {
            self.see_of(place, owner, pod_write(Verb::Change, new), before());
        }
        if !old.is_terminating() && new.is_terminating() {
            let write = pod_write(Verb::Delete, new);
            self.see_of(place, new.controller.as_deref(), write, before());
        }
    }

    fn on_delete(&self, pod: &Arc<Pod>, _final_state_unknown: bool) {
        if pod.is_terminating() {
            return;
        }
        let before = Before::Pod(Some(Arc::clone(pod)));
        let controller = pod.controller.as_deref();
        let write = pod_write(Verb::Delete, pod);
        self.see_of(
            (&pod.namespace, &pod.resource_version),
            controller,
            write,
            before,
        );
    }
}

impl EventHandler<Claim> for Observer {
    fn on_add(&self, claim: &Arc<Claim>, in_initial_list: bool) {
        if !in_initial_list {
            self.see_claim(claim, Verb::Create, Before::Claim(None));
        }
    }

    fn on_update(&self, old: &Arc<Claim>, new: &Arc<Claim>) {
        if owners(old) != owners(new) {
            self.see_claim(new, Verb::Change, Before::Claim(Some(Arc::clone(old))));
        }
    }

    /// Controllers of sets never delete claims.
    fn on_delete(&self, _claim: &Arc<Claim>, _final_state_unknown: bool) {}
}

fn revision_write(verb: Verb, revision: &ControllerRevision) -> ObservableWrite {
    ObservableWrite::new(verb, TrackedResource::ControllerRevisions, &revision.name)
}

impl EventHandler<ControllerRevision> for Observer {
    fn on_add(&self, revision: &Arc<ControllerRevision>, in_initial_list: bool) {
        if in_initial_list {
            return;
        }
        let write = revision_write(Verb::Create, revision).with(revision.revision.to_string());
        let controller = revision.controller.as_ref();
        self.see_of(
            (&revision.namespace, &revision.resource_version),
            controller,
            write,
            Before::Revision(None),
        );
    }

    fn on_update(&self, old: &Arc<ControllerRevision>, new: &Arc<ControllerRevision>) {
        if old.revision == new.revision && old.controller == new.controller {
            return;
        }
        let before = Before::Revision(Some(Arc::clone(old)));
        let controller = new.controller.as_ref().or(old.controller.as_ref());
        let write = revision_write(Verb::Change, new);
        self.see_of(
            (&new.namespace, &new.resource_version),
            controller,
            write,
            before,
        );
    }

    fn on_delete(&self, revision: &Arc<ControllerRevision>, _final_state_unknown: bool) {
        let before = Before::Revision(Some(Arc::clone(revision)));
        let controller = revision.controller.as_ref();
        let write = revision_write(Verb::Delete, revision);
        self.see_of(
            (&revision.namespace, &revision.resource_version),
            controller,
            write,
            before,
        );
    }
}
