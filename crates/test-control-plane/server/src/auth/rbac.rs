//! Role-based access control by the stored roles and bindings.

pub(crate) mod bootstrap_policy;
pub(crate) mod index;
pub(crate) mod rule;

use std::sync::{Arc, PoisonError, RwLock};

pub use rule::PolicyRule;

pub(crate) use index::RbacIndex;

use kube_test_control_plane_store::store::StoreReader;

/// Index of the rules of each user. It is rebuilt only after a change of a role or a binding.
#[derive(Debug, Default)]
pub(crate) struct Rbac(RwLock<Arc<RbacIndex>>);

impl Rbac {
    /// Returns the index of the current roles and bindings.
    pub(crate) fn index(&self, store: &StoreReader) -> Arc<RbacIndex> {
        let changes = store.policy_revision();
        let index = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if index.revision == changes {
            return index;
        }
        let index = Arc::new(index.rebuilt(store, changes));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&index);
        index
    }
}
