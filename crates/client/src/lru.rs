//! A map that forgets what was used least recently.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// A bounded map. Reading and writing an entry both count as use.
///
/// Upstream: `groupcache/lru.Cache`.
#[derive(Debug)]
pub struct LruCache<Q, V> {
    capacity: NonZeroUsize,
    entries: BTreeMap<Q, (u64, V)>,
    /// The keys by the time of their last use.
    uses: BTreeMap<u64, Q>,
    time: u64,
}

impl<Q: Ord + Clone, V> LruCache<Q, V> {
    /// An empty map that holds at most this many entries.
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self {
            capacity,
            entries: BTreeMap::new(),
            uses: BTreeMap::new(),
            time: 0,
        }
    }

    /// The value of a key, for reading or changing in place.
    pub fn get(&mut self, key: &Q) -> Option<&mut V> {
        self.time += 1;
        let (used, value) = self.entries.get_mut(key)?;
        if let Some(owned_key) = self.uses.remove(used) {
            self.uses.insert(self.time, owned_key);
        }
        *used = self.time;
        Some(value)
    }

    /// Puts a value in; if the map is full, the entry used least recently goes.
    pub fn insert(&mut self, key: Q, value: V) {
        self.time += 1;
        if let Some((used, _)) = self.entries.insert(key.clone(), (self.time, value)) {
            self.uses.remove(&used);
        }
        self.uses.insert(self.time, key);
        if self.entries.len() > self.capacity.get()
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }

    /// Takes the entry that was used least recently.
    pub fn pop_oldest(&mut self) -> Option<(Q, V)> {
        let (_, key) = self.uses.pop_first()?;
        let (_, value) = self.entries.remove(&key)?;
        Some((key, value))
    }

    /// Takes an entry.
    pub fn remove(&mut self, key: &Q) -> Option<V> {
        let (used, value) = self.entries.remove(key)?;
        self.uses.remove(&used);
        Some(value)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_least_recently_goes_first() {
        let mut cache = LruCache::new(NonZeroUsize::new(2).unwrap());
        cache.insert("a", 1);
        cache.insert("b", 2);
        assert_eq!(cache.get(&"a"), Some(&mut 1));
        cache.insert("c", 3);
        assert_eq!(cache.get(&"b"), None);
        assert_eq!(cache.get(&"a"), Some(&mut 1));
        assert_eq!(cache.get(&"c"), Some(&mut 3));
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn entries_can_be_taken() {
        let mut cache = LruCache::new(NonZeroUsize::new(3).unwrap());
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.insert(key, value);
        }
        cache.get(&"a");
        assert_eq!(cache.remove(&"c"), Some(3));
        assert_eq!(cache.pop_oldest(), Some(("b", 2)));
        assert_eq!(cache.pop_oldest(), Some(("a", 1)));
        assert_eq!((cache.pop_oldest(), cache.is_empty()), (None, true));
    }

    #[test]
    fn an_insert_of_a_known_key_replaces_its_value() {
        let mut cache = LruCache::new(NonZeroUsize::new(2).unwrap());
        cache.insert("a", 1);
        cache.insert("b", 2);
        cache.insert("a", 3);
        cache.insert("c", 4);
        assert_eq!(cache.get(&"a"), Some(&mut 3));
        assert_eq!(cache.get(&"b"), None);
    }
}
