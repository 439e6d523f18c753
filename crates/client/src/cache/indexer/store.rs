//! The cache's trees, without a lock.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{CachedObject, IndexKey};

/// Objects by name, buckets of objects by index, and the last stored version.
pub(super) struct Store<K> {
    objects: BTreeSet<Entry<K>>,
    /// Each bucket is sorted by namespace and name, and never empty.
    indexes: BTreeMap<IndexKey, Vec<Arc<K>>>,
    version: Arc<str>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeSet::new(),
            indexes: BTreeMap::new(),
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
        self.objects
            .iter()
            .map(|entry| Arc::clone(&entry.0))
            .collect()
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
    let wanted = (object.namespace(), object.name());
    bucket.binary_search_by(|entry| (entry.namespace(), entry.name()).cmp(&wanted))
}

/// An object ordered by its namespace and name, so that the tree needs no separate key.
struct Entry<K>(Arc<K>);

/// The tree's ordering; allows lookups with borrowed strings.
trait Named {
    fn full_name(&self) -> (&str, &str);
}

impl<K: CachedObject> Named for Entry<K> {
    fn full_name(&self) -> (&str, &str) {
        (self.0.namespace(), self.0.name())
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

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.full_name().cmp(&other.full_name())
    }
}

impl<K: CachedObject> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.full_name() == other.full_name()
    }
}

impl<K: CachedObject> Eq for Entry<K> {}

impl<K: CachedObject> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: CachedObject> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.full_name().cmp(&other.full_name())
    }
}
