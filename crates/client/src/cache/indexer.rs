//! The cache of one resource: objects by namespace and name, with secondary indexes.
//!
//! Ordered trees throughout, so that no result depends on a hash, and no string is stored twice:
//! the trees hold nothing but shared pointers to the objects, and an object in one index costs two
//! pointers beside itself.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube_apimachinery::json::Document;

pub use key::IndexKey;
use set_aside::SetAsides;
pub use set_aside::{SetAside, SetAsideOwner};
pub use shared_text::{SharedText, TextPool};
use store::Store;

mod key;
mod set_aside;
mod shared_text;
mod store;

/// An object that can be cached: a compact type with only what the controller reads.
pub trait CachedObject: Send + Sync + Sized + 'static {
    /// The namespace; empty for an object without one.
    fn namespace(&self) -> &str;
    /// The name.
    fn name(&self) -> &str;
    /// The uid.
    fn uid(&self) -> &str;
    /// The version that the server gave the object.
    fn resource_version(&self) -> &str;
    /// Reads the object from the server's JSON. Items of a list carry no `kind` or `apiVersion`.
    fn decode(json: &str) -> Result<Self, serde_json::Error>;
    /// Reads the object from `json`, a part of a document. Implemented by those that need the bytes
    /// that were sent.
    fn decode_part(document: &Document, json: &str) -> Result<Self, serde_json::Error> {
        let _ = document;
        Self::decode(json)
    }
    /// Puts the object's long texts into the pool. Implemented by those that have such.
    fn share_texts(&mut self, pool: &TextPool) {
        let _ = pool;
    }
    /// Names the indexes that the object stands in, each at most once. Every key belongs to the
    /// namespace of the object.
    fn index_values(&self, out: &mut Vec<IndexKey>);
}

/// A thread-safe cache of objects that also knows how new it is.
///
/// Readers get shared pointers; an object in the cache is never changed, only replaced.
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

/// What a [`Indexer::replace`] has changed, for the handlers.
pub struct Replaced<K> {
    /// The new objects in order, each with the one it replaces.
    pub present: Vec<(Option<Arc<K>>, Arc<K>)>,
    /// The objects that are gone, in order, in the last state known.
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
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object of this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read().store.get(namespace, name)
    }

    /// The objects in one index, ordered by namespace and name. The cost grows with their number,
    /// not with that of the other objects.
    pub fn by_index(&self, key: &IndexKey) -> Vec<Arc<K>> {
        self.read().store.by_index(key)
    }

    /// All objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().store.list()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().store.len()
    }

    /// True if there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version last assigned to the cache, by whatever came last: an object, a list or a
    /// bookmark. It can move back when a list comes from an older snapshot. Empty at first.
    pub fn last_sync_resource_version(&self) -> Arc<str> {
        self.read().store.version()
    }

    /// Puts an object in, new or not, and assigns its version to the cache. Returns the object it
    /// replaces.
    pub fn add(&self, object: impl Into<Arc<K>>) -> Option<Arc<K>> {
        let object = object.into();
        let mut content = self.write();
        content.store.set_version(object.resource_version());
        content.set_aside.remove(object.namespace(), object.name());
        content.store.insert(object)
    }

    /// Notes that the present state of an object can't be decoded, and assigns its version to the
    /// cache. The object stays as it was cached, if it was.
    pub fn set_aside(&self, object: SetAside) {
        let mut content = self.write();
        if !object.resource_version.is_empty() {
            content.store.set_version(&object.resource_version);
        }
        content.set_aside.insert(object);
    }

    /// Whether the present state of this object can't be decoded.
    pub fn is_set_aside(&self, namespace: &str, name: &str) -> bool {
        self.read().set_aside.contains(namespace, name)
    }

    /// The objects of a namespace whose present state can't be decoded, in order.
    pub fn set_aside_in(&self, namespace: &str) -> Vec<Arc<SetAside>> {
        self.read().set_aside.of_namespace(namespace)
    }

    /// All objects whose present state can't be decoded, in order.
    pub fn all_set_aside(&self) -> Vec<Arc<SetAside>> {
        self.read().set_aside.iter().cloned().collect()
    }

    /// How many objects there are whose present state can't be decoded.
    pub fn set_aside_len(&self) -> usize {
        self.read().set_aside.len()
    }

    /// The same as [`Indexer::add`], under the name that reads better.
    pub fn update(&self, object: impl Into<Arc<K>>) -> Option<Arc<K>> {
        self.add(object)
    }

    /// Takes out the object of the same name, and assigns the version of the one given to the
    /// cache. Returns the one taken out.
    pub fn delete(&self, object: &K) -> Option<Arc<K>> {
        self.delete_named(object.namespace(), object.name(), object.resource_version())
    }

    /// Takes out the object of this name, and assigns the version to the cache unless that is empty.
    /// Returns the one taken out.
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

    /// Takes out the object of this name, leaving the version alone. For tests.
    pub fn remove(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.delete_named(namespace, name, "")
    }

    /// Replaces the whole content in one step and assigns the version of the list. The order of
    /// `objects` does not matter; of two with the same name the later one stays.
    pub fn replace(&self, objects: Vec<Arc<K>>, resource_version: &str) -> Replaced<K> {
        self.replace_all(objects, Vec::new(), resource_version)
    }

    /// The same with objects that can't be decoded: they stay as they were cached, if they were, and
    /// count as neither present nor gone.
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

    /// Assigns the version that a bookmark names.
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
