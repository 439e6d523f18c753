//! Parts that cached objects have in common.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube_apimachinery::owner_reference::OwnerReference;
use weak_table::WeakHashSet;

use super::TextPool;

/// Parts that cached objects share, each kept only while an object holds it.
#[derive(Debug, Default)]
pub struct SharedParts {
    /// Long texts.
    pub texts: TextPool,
    /// Owners.
    pub owners: OwnerPool,
}

/// Owner references, of which all pods of a set have the same.
#[derive(Debug, Default)]
pub struct OwnerPool(Mutex<WeakHashSet<Weak<OwnerReference>>>);

impl OwnerPool {
    /// Replaces the reference by an equal one that another object holds, if there is one.
    pub fn share(&self, owner: &mut Arc<OwnerReference>) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match pool.get(&**owner) {
            Some(known) => *owner = known,
            None => drop(pool.insert(Arc::clone(owner))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_owners_are_held_once() {
        let pool = OwnerPool::default();
        let owner = |uid| {
            let owner = OwnerReference::new_controller("apps/v1", "StatefulSet", "web", uid);
            let mut owner = Arc::new(owner);
            pool.share(&mut owner);
            owner
        };
        let (one, same, other) = (owner("1"), owner("1"), owner("2"));
        assert!(Arc::ptr_eq(&one, &same));
        assert_eq!(*other.uid, *"2");
        drop((one, same));
        let again = owner("1");
        assert_eq!(Arc::strong_count(&again), 1, "the pool holds nothing alive");
        assert_eq!(*again.uid, *"1");
    }
}
