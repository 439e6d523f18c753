//! The keys that caches are indexed by.

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::indexer::IndexKey;

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
