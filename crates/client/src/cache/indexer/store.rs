//! The cache's tables, without a lock.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::cached_object::CachedObject;
use super::key::IndexKey;

/// Objects by name, buckets of objects by index, and the last stored version.
pub(super) struct Store<K> {
    /// A sync looks up every claim of its set, so a lookup must not compare names along a tree. The
    /// hash depends on a random number, so users can't choose names that collide.
    objects: HashSet<Entry<K>, RandomState>,
    /// Each bucket is sorted and never empty.
    indexes: HashMap<IndexKey, Vec<Arc<K>>, RandomState>,
    version: Arc<str>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: HashSet::default(),
            indexes: HashMap::default(),
            version: "".into(),
        }
    }
}

impl<K: CachedObject> Store<K> {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let key: &dyn Named = &(namespace, name);
        self.objects.get(key).map(|entry| Arc::clone(&entry.0))
    }

    pub(super) fn by_index(&self, key: &IndexKey) -> Vec<Arc<K>> {
        self.indexes.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn list(&self) -> Vec<Arc<K>> {
        let objects = self.objects.iter().map(|entry| Arc::clone(&entry.0));
        let mut objects: Vec<Arc<K>> = objects.collect();
        objects.sort_by(|one, other| full_name(&**one).cmp(&full_name(&**other)));
        objects
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn version(&self) -> Arc<str> {
        Arc::clone(&self.version)
    }

    pub(super) fn set_version(&mut self, version: &str) {
        self.version = version.into();
    }

    pub(super) fn insert(&mut self, object: Arc<K>) -> Option<Arc<K>> {
        let old = self.get(object.namespace(), object.name());
        let old_keys = old.as_deref().map(index_keys).unwrap_or_default();
        let new_keys = index_keys(&*object);
        for key in old_keys {
            if !new_keys.contains(&key) {
                self.unindex(&key, &*object);
            }
        }
        for key in new_keys {
            let bucket = self.indexes.entry(key).or_default();
            match position(bucket, &*object) {
                Ok(index) => {
                    if let Some(place) = bucket.get_mut(index) {
                        *place = Arc::clone(&object);
                    }
                }
                Err(index) => {
                    // Most buckets stay as small as a set's number of pods, so grow them one by
                    // one.
                    if bucket.capacity() == bucket.len() {
                        bucket.reserve_exact(1 + bucket.len() / 4);
                    }
                    bucket.insert(index, Arc::clone(&object));
                }
            }
        }
        self.objects.replace(Entry(object));
        old
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let key: &dyn Named = &(namespace, name);
        let old = self.objects.take(key)?.0;
        for key in index_keys(&*old) {
            self.unindex(&key, &*old);
        }
        Some(old)
    }

    /// Removes the object with this name from a bucket.
    fn unindex(&mut self, key: &IndexKey, object: &K) {
        let Some(bucket) = self.indexes.get_mut(key) else {
            return;
        };
        if let Ok(index) = position(bucket, object) {
            bucket.remove(index);
        }
        if bucket.is_empty() {
            self.indexes.remove(key);
        }
    }
}

fn index_keys<K: CachedObject>(object: &K) -> Vec<IndexKey> {
    let mut keys = Vec::with_capacity(2);
    object.index_values(&mut keys);
    keys
}

/// Finds the object with the same name in a bucket, or the position to insert it at.
fn position<K: CachedObject>(bucket: &[Arc<K>], object: &K) -> Result<usize, usize> {
    bucket.binary_search_by(|entry| place(&**entry).cmp(&place(object)))
}

/// Sorts short names first, and so the pods of a set by their ordinals.
fn place<K: CachedObject>(object: &K) -> (usize, (&str, &str)) {
    (object.name().len(), full_name(object))
}

fn full_name<K: CachedObject>(object: &K) -> (&str, &str) {
    (object.namespace(), object.name())
}

/// An object known by its namespace and name, so that the table needs no separate key.
struct Entry<K>(Arc<K>);

/// The table's key; allows lookups with borrowed strings.
trait Named {
    fn full_name(&self) -> (&str, &str);
}

impl<K: CachedObject> Named for Entry<K> {
    fn full_name(&self) -> (&str, &str) {
        full_name(&*self.0)
    }
}

impl Named for (&str, &str) {
    fn full_name(&self) -> (&str, &str) {
        *self
    }
}

impl<'a, K: CachedObject> Borrow<dyn Named + 'a> for Entry<K> {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.full_name() == other.full_name()
    }
}

impl Eq for dyn Named + '_ {}

impl Hash for dyn Named + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.full_name().hash(state);
    }
}

impl<K: CachedObject> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.full_name() == other.full_name()
    }
}

impl<K: CachedObject> Eq for Entry<K> {}

impl<K: CachedObject> Hash for Entry<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.full_name().hash(state);
    }
}
