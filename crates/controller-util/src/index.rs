//! Index keys of the caches.

use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::cache::indexer::IndexKey;

/// Index key of the orphaned pods whose names a set could have given them. A sync reads only these
/// orphans, so its cost doesn't grow with other orphans.
pub fn orphan_pods_index_key(namespace: &str, set: &str) -> IndexKey {
    IndexKey::orphans(&format!("{namespace}/{set}"))
}

/// Index key of objects by controller; orphans have the key of their namespace's orphans.
///
/// Upstream: `controller.PodControllerIndexKey`, here also for revisions.
pub fn controller_index_key(namespace: &str, controller: Option<&OwnerReference>) -> IndexKey {
    match controller {
        Some(owner) => IndexKey::controller(namespace, &owner.kind, &owner.name, &owner.uid),
        None => IndexKey::orphans(namespace),
    }
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::object_key::ObjectKey;
    use statefulset_client::cache::indexer::CachedObject;

    use super::*;
    use crate::testing::builders;

    /// Identity and index keys of an object.
    fn identity<K: CachedObject>(object: &K) -> ([&str; 4], Vec<IndexKey>) {
        let mut keys = Vec::new();
        object.index_values(&mut keys);
        let texts = [
            object.namespace(),
            object.name(),
            object.uid(),
            object.resource_version(),
        ];
        (texts, keys)
    }

    #[test]
    fn sets_are_indexed_by_namespace_and_claims_by_name() {
        let set = builders::set("web").build();
        let keys = vec![IndexKey::namespace("ns")];
        assert_eq!(identity(&set), (["ns", "web", "web-uid", "1"], keys));
        let claim = builders::claim(&set, "data", 0).build();
        assert_eq!(claim.key(), ObjectKey::new("ns", "data-web-0"));
        let texts = ["ns", "data-web-0", "data-web-0-uid", "3"];
        assert_eq!(identity(&claim), (texts, Vec::new()));
    }

    #[test]
    fn pods_are_indexed_by_controller_or_adopter() {
        let set = builders::set("web").build();
        let owner = set.controller_reference();
        let controlled = vec![IndexKey::controller("ns", "StatefulSet", "web", "web-uid")];
        assert_eq!(controller_index_key("ns", Some(&owner)), controlled[0]);
        assert_eq!(set.owned_index_key(), controlled[0]);
        let pod = || builders::pod(&set, 0);
        let texts = ["ns", "web-0", "web-0-uid", "5"];
        assert_eq!(identity(&pod().build()), (texts, controlled));
        let (_, keys) = identity(&pod().orphan().build());
        assert_eq!(keys, [orphan_pods_index_key("ns", "web")]);
        let nameless = pod().orphan().with("metadata.name", "debug").build();
        assert_eq!(identity(&nameless).1, []);
    }

    #[test]
    fn revisions_are_indexed_by_controller_or_as_orphans() {
        let set = builders::set("web").build();
        let revision = || builders::revision(&set, "web-1", 1, "{}");
        let controlled = vec![IndexKey::controller("ns", "StatefulSet", "web", "web-uid")];
        let texts = ["ns", "web-1", "web-1-uid", "2"];
        assert_eq!(identity(&revision().build()), (texts, controlled));
        let orphan = revision().orphan().build();
        assert_eq!(orphan.key(), ObjectKey::new("ns", "web-1"));
        assert_eq!(identity(&orphan).1, [IndexKey::orphans("ns")]);
    }
}
