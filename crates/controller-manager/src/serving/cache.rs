//! Answers that are remembered for a while.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use statefulset_client::lru::LruCache;
use tokio::time::Instant;

/// A bounded map whose entries expire, each in its own time.
///
/// Upstream: `cache.LRUExpireCache`.
pub(crate) struct ExpiringCache<K, V>(Mutex<LruCache<K, (Instant, V)>>);

impl<K: Ord + Clone, V: Clone> ExpiringCache<K, V> {
    /// An empty map that holds at most this many entries.
    pub(crate) fn new(capacity: NonZeroUsize) -> Self {
        Self(Mutex::new(LruCache::new(capacity)))
    }

    /// The value of a key, if it has not expired.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (expires, value) = entries.get(key)?;
        (*expires > Instant::now()).then(|| value.clone())
    }

    /// Remembers a value for a while; not at all if that is no time.
    pub(crate) fn insert(&self, key: K, value: V, ttl: Duration) {
        let Some(expires) = Instant::now().checked_add(ttl) else {
            return;
        };
        if ttl.is_zero() {
            return;
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(key, (expires, value));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_entry_expires_in_its_own_time() {
        let cache = ExpiringCache::new(NonZeroUsize::new(2).unwrap());
        cache.insert("short", 1, Duration::from_secs(1));
        cache.insert("long", 2, Duration::from_secs(10));
        assert_eq!(
            (cache.get(&"short"), cache.get(&"long")),
            (Some(1), Some(2))
        );
        advance(Duration::from_secs(1)).await;
        assert_eq!((cache.get(&"short"), cache.get(&"long")), (None, Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_is_not_remembered_and_the_oldest_goes_first() {
        let cache = ExpiringCache::new(NonZeroUsize::MIN);
        cache.insert("none", 1, Duration::ZERO);
        assert_eq!(cache.get(&"none"), None);
        cache.insert("first", 1, Duration::from_secs(1));
        cache.insert("second", 2, Duration::from_secs(1));
        assert_eq!((cache.get(&"first"), cache.get(&"second")), (None, Some(2)));
    }
}
