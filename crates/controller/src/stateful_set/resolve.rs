//! Sets affected by a pod event.

use std::sync::Arc;

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::cache::indexer::{IndexKey, Indexer};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{KIND, StatefulSet};

/// Returns the cached set that a controller reference names, if its uid matches. Ignores
/// upstream's API version.
///
/// Upstream: `resolveControllerRef`.
pub(crate) fn resolve_controller_ref(
    sets: &Indexer<StatefulSet>,
    namespace: &str,
    reference: &OwnerReference,
) -> Option<Arc<StatefulSet>> {
    if *reference.kind != *KIND {
        return None;
    }
    sets.get(namespace, &reference.name)
        .filter(|set| *set.uid() == *reference.uid)
}

/// Returns the sets that select a pod without a controller, the oldest first. Sets with an empty,
/// missing or malformed selector select no pods.
///
/// Upstream: `getStatefulSetsForPod`.
pub(crate) fn stateful_sets_for_pod(
    sets: &Indexer<StatefulSet>,
    pod: &Pod,
) -> Vec<Arc<StatefulSet>> {
    if pod.labels.is_empty() {
        return Vec::new();
    }
    let mut selecting = sets.by_index(&IndexKey::namespace(&pod.namespace));
    selecting.retain(|set| {
        let selector = set.spec.selector.compiled();
        selector.is_ok_and(|selector| !selector.is_empty() && selector.matches(&pod.labels))
    });
    overlapping_stateful_sets(&mut selecting);
    if selecting.len() > 1 {
        let sets: Vec<&str> = selecting.iter().map(|set| set.name()).collect();
        tracing::error!(
            pod = %pod.key(),
            sets = sets.join(" "),
            "more than one StatefulSet is selecting pods with the same labels"
        );
    }
    selecting
}

/// Sorts sets by age, then by name.
///
/// Upstream: `overlappingStatefulSets`.
pub(crate) fn overlapping_stateful_sets(sets: &mut [Arc<StatefulSet>]) {
    sets.sort_by(|a, b| {
        let age = |set: &StatefulSet| set.metadata.creation_timestamp;
        age(a).cmp(&age(b)).then_with(|| a.name().cmp(b.name()))
    });
}
