//! The cache of one resource: objects by namespace and name, with secondary indexes.
//!
//! Results are sorted, so none depends on a hash. The tables hold shared pointers to the objects,
//! whose names are stored only there.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use cached_object::{CachedObject, FromProtobuf};
pub use key::IndexKey;
use set_aside::SetAsides;
pub use set_aside::{SetAside, SetAsideOwner, Undecodable};
pub use shared_parts::{OwnerPool, SharedParts};
pub use shared_text::{SharedText, TextPool};
use store::Store;

mod cached_object;
mod key;
mod set_aside;
mod shared_parts;
mod shared_text;
mod store;

/// A thread-safe cache of objects that tracks its resource version.
///
/// Readers get shared pointers. A cached object is never changed, only replaced.
/// Upstream: `cache.Indexer`, `cache.Lister`.
pub struct Indexer<K> {
    content: RwLock<Content<K>>,
}

struct Content<K> {
    store: Store<K>,
    set_aside: SetAsides,
}

impl<K> Default for Content<K> {
    fn default() -> Self {
        Self {
            store: Store::default(),
            set_aside: SetAsides::default(),
        }
    }
}

/// Changes that an [`Indexer::replace`] made, for the handlers.
pub struct Replaced<K> {
    /// The new objects in order, each with the one it replaces.
    pub present: Vec<(Option<Arc<K>>, Arc<K>)>,
    /// The last known state of each removed object, in order.
    pub gone: Vec<Arc<K>>,
}

impl<K> Default for Indexer<K> {
    fn default() -> Self {
        Self {
            content: RwLock::default(),
        }
    }
}

impl<K: CachedObject> Indexer<K> {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the object with this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read().store.get(namespace, name)
    }

    /// Returns the objects in one index, short names first, then by namespace and name. The cost
    /// depends only on the number of returned objects.
    pub fn by_index(&self, key: &IndexKey) -> Vec<Arc<K>> {
        self.read().store.by_index(key)
    }

    /// Returns all objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().store.list()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.read().store.len()
    }

    /// Returns true if the cache holds no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the last resource version stored: that of an object, a list or a bookmark. It can
    /// move backwards after a list from an older snapshot. Initially empty.
    pub fn last_sync_resource_version(&self) -> Arc<str> {
        self.read().store.version()
    }

    /// Adds or replaces an object and stores its version. Returns the replaced object.
    pub fn add(&self, object: impl Into<Arc<K>>) -> Option<Arc<K>> {
        let object = object.into();
        let mut content = self.write();
        content.store.set_version(object.resource_version());
        content.set_aside.remove(object.namespace(), object.name());
        content.store.insert(object)
    }

    /// Records that the current state of an object can't be decoded, and stores its version. A
    /// cached last good state is kept.
    pub fn set_aside(&self, object: SetAside) {
        let mut content = self.write();
        if !object.resource_version.is_empty() {
            content.store.set_version(&object.resource_version);
        }
        content.set_aside.insert(object);
    }

    /// Returns true if the object's current state can't be decoded.
    pub fn is_set_aside(&self, namespace: &str, name: &str) -> bool {
        self.read().set_aside.contains(namespace, name)
    }

    /// Returns the namespace's objects whose current state can't be decoded, in order.
    pub fn set_aside_in(&self, namespace: &str) -> Vec<Arc<SetAside>> {
        self.read().set_aside.of_namespace(namespace)
    }

    /// Returns all objects whose current state can't be decoded, in order.
    pub fn all_set_aside(&self) -> Vec<Arc<SetAside>> {
        self.read().set_aside.iter().cloned().collect()
    }

    /// Returns the number of objects whose current state can't be decoded.
    pub fn set_aside_len(&self) -> usize {
        self.read().set_aside.len()
    }

    /// Same as [`Indexer::add`].
    pub fn update(&self, object: impl Into<Arc<K>>) -> Option<Arc<K>> {
        self.add(object)
    }

    /// Removes the object with the same name and stores the version of the given one. Returns the
    /// removed object.
    pub fn delete(&self, object: &K) -> Option<Arc<K>> {
        self.delete_named(object.namespace(), object.name(), object.resource_version())
    }

    /// Removes the object with this name and stores the version unless it is empty. Returns the
    /// removed object.
    pub fn delete_named(
        &self,
        namespace: &str,
        name: &str,
        resource_version: &str,
    ) -> Option<Arc<K>> {
        let mut content = self.write();
        if !resource_version.is_empty() {
            content.store.set_version(resource_version);
        }
        content.set_aside.remove(namespace, name);
        content.store.remove(namespace, name)
    }

    /// Removes the object with this name without changing the version. For tests.
    pub fn remove(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.delete_named(namespace, name, "")
    }

    /// Replaces the whole content in one step and stores the list's version. The order of `objects`
    /// does not matter; the last of several objects with one name wins.
    pub fn replace(&self, objects: Vec<Arc<K>>, resource_version: &str) -> Replaced<K> {
        self.replace_all(objects, Vec::new(), resource_version)
    }

    /// Same as [`Indexer::replace`], with objects that can't be decoded. Their last good state
    /// stays cached, and they count as neither present nor gone.
    pub fn replace_all(
        &self,
        objects: Vec<Arc<K>>,
        set_aside: Vec<SetAside>,
        resource_version: &str,
    ) -> Replaced<K> {
        let mut fresh = Content::default();
        for object in objects {
            fresh.store.insert(object);
        }
        let present_objects = fresh.store.list();
        let mut content = self.write();
        for object in set_aside {
            if let Some(last) = content.store.get(&object.namespace, &object.name) {
                fresh.store.insert(last);
            }
            fresh.set_aside.insert(object);
        }
        fresh.store.set_version(resource_version);
        let old = std::mem::replace(&mut *content, fresh).store;
        let find_old = |new: Arc<K>| (old.get(new.namespace(), new.name()), new);
        let present = present_objects.into_iter().map(find_old).collect();
        let is_gone = |object: &Arc<K>| {
            content
                .store
                .get(object.namespace(), object.name())
                .is_none()
        };
        let gone = old.list().into_iter().filter(is_gone).collect();
        Replaced { present, gone }
    }

    /// Stores the version of a bookmark.
    pub fn bookmark(&self, resource_version: &str) {
        self.write().store.set_version(resource_version);
    }

    fn read(&self) -> RwLockReadGuard<'_, Content<K>> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Content<K>> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
