//! The stored policies, bindings, parameters and webhook configurations, now or at an earlier
//! revision.

use std::sync::Arc;

use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_store::store::{Collection, StoreReader};

/// Returns the objects of a storage name in a namespace, or in all (an empty name), at a revision,
/// `None` being the newest. The log may no longer reach back to it; then these are the newest ones.
pub(crate) fn objects(
    store: &StoreReader,
    (storage, namespace): (&str, &str),
    at: Option<u64>,
) -> Vec<Arc<Object>> {
    let newest = || store.list(storage, namespace).1;
    let Some(at) = at else {
        return newest();
    };
    let all = Collection::new(storage, namespace);
    store.page_at(&all, usize::MAX, at).map_or_else(
        |_| {
            tracing::warn!(
                storage,
                at,
                "the log no longer has this state: the newest applies"
            );
            newest()
        },
        |page| page.objects,
    )
}
