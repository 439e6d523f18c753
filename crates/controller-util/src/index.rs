//! The keys that caches are indexed by.

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::indexer::IndexKey;

use crate::pod::split_name;

/// The key of the pods that nobody controls and whose names a set could have given them. Other
/// orphans are no set's concern, so a sync never looks at them, however many there are.
pub fn orphan_pods_index_key(namespace: &str, set: &str) -> IndexKey {
    IndexKey::orphans(&format!("{namespace}/{set}"))
}

/// The key of a pod: by who controls it, or else by the name of the set that could adopt it.
pub(crate) fn pod_index_key(
    namespace: &str,
    name: &str,
    controller: Option<&OwnerReference>,
) -> Option<IndexKey> {
    match controller {
        Some(_) => Some(controller_index_key(namespace, controller)),
        None => split_name(name).map(|(set, _)| orphan_pods_index_key(namespace, set)),
    }
}

/// The key of objects by who controls them; those that nobody controls have the namespace's
/// orphan key.
///
/// Upstream: `controller.PodControllerIndexKey`.
pub fn controller_index_key(namespace: &str, controller: Option<&OwnerReference>) -> IndexKey {
    match controller {
        Some(owner) => IndexKey::controller(namespace, &owner.kind, &owner.name, &owner.uid),
        None => IndexKey::orphans(namespace),
    }
}
