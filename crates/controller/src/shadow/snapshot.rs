//! The objects of one set at one moment, apart from the shared caches.

use std::sync::Arc;

use statefulset_client::cache::indexer::IndexKey;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::index::orphan_pods_index_key;
use statefulset_controller_util::pod::{Pod, split_name};
use statefulset_controller_util::stateful_set::StatefulSet;

/// Number of missing pods whose names and claims are read: the most that one sync creates.
const MISSING_MAX: usize = 500;

/// The state of an object before a write; `None` if it didn't exist.
#[derive(Clone)]
pub(super) enum Before {
    Pod(Option<Arc<Pod>>),
    Claim(Option<Arc<Claim>>),
    Revision(Option<Arc<ControllerRevision>>),
}

/// Copies the objects on which a sync of the set decides: pointers, no texts. `gone` are names of
/// pods that the caller restores.
pub(super) fn copy<'a>(
    shared: &Caches,
    set: &Arc<StatefulSet>,
    gone: impl Iterator<Item = &'a str>,
) -> Caches {
    let copy = Caches::default();
    copy.sets.add(Arc::clone(set));
    let (namespace, name) = (set.namespace(), set.name());
    let owned = set.owned_index_key();
    let mut pods = shared.pods.by_index(&owned);
    pods.extend(
        shared
            .pods
            .by_index(&orphan_pods_index_key(namespace, name)),
    );
    let wanted = usize::try_from(set.spec.replicas).unwrap_or_default();
    let first = i64::from(set.spec.start_ordinal);
    let count = wanted.min(pods.len() + MISSING_MAX);
    let wanted = (0i64..).take(count).map(|index| first + index);
    let mut names: Vec<String> = wanted.map(|ordinal| format!("{name}-{ordinal}")).collect();
    // Condemned pods have claims too.
    names.extend(pods.iter().map(|pod| pod.name.to_string()));
    names.extend(gone.map(str::to_owned));
    for pod in pods {
        copy.pods.add(pod);
    }
    for pod in &names {
        if let Some(found) = shared.pods.get(namespace, pod) {
            copy.pods.add(found);
        }
        let ordinal = split_name(pod).map_or("", |(_, ordinal)| ordinal);
        for template in set.spec.claim_templates.iter() {
            let claim = format!("{}-{name}-{ordinal}", template.name);
            if let Some(found) = shared.claims.get(namespace, &claim) {
                copy.claims.add(found);
            }
        }
    }
    let mut revisions = shared.revisions.by_index(&owned);
    revisions.extend(shared.revisions.by_index(&IndexKey::orphans(namespace)));
    for revision in revisions {
        copy.revisions.add(revision);
    }
    copy
}

/// Restores the state of an object before a write.
pub(super) fn undo(copy: &Caches, namespace: &str, name: &str, before: &Before) {
    match before {
        Before::Pod(Some(pod)) => drop(copy.pods.add(Arc::clone(pod))),
        Before::Pod(None) => drop(copy.pods.remove(namespace, name)),
        Before::Claim(Some(claim)) => drop(copy.claims.add(Arc::clone(claim))),
        Before::Claim(None) => drop(copy.claims.remove(namespace, name)),
        Before::Revision(Some(revision)) => drop(copy.revisions.add(Arc::clone(revision))),
        Before::Revision(None) => drop(copy.revisions.remove(namespace, name)),
    }
}
