//! Cache of token and access reviews.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// Length of a SHA-256 digest, in bytes.
const DIGEST_LEN: usize = 32;
/// Size of an entry without its value, in bytes: digest, times and two map slots.
const OVERHEAD: usize = 256;

/// Digest of a request. The cache thus stores no token or name as a key, and a long request costs
/// no more than a short one.
pub(crate) type Digest = [u8; DIGEST_LEN];

/// Computes the digest of a request.
pub(crate) fn digest_of(question: &[u8]) -> Digest {
    let mut bytes = [0; DIGEST_LEN];
    bytes.copy_from_slice(digest(&SHA256, question).as_ref());
    bytes
}

/// Heap memory of a value.
pub(crate) trait HeapSize {
    /// Approximate size in bytes.
    fn heap_size(&self) -> usize;
}

/// A map bounded in entries and bytes, whose entries expire individually.
///
/// Upstream: `cache.LRUExpireCache`.
pub(crate) struct ExpiringCache<V> {
    bytes_max: usize,
    state: Mutex<State<V>>,
}

struct State<V> {
    entries: LruCache<Digest, Entry<V>>,
    capacity: usize,
    bytes: usize,
}

struct Entry<V> {
    expires: Instant,
    value: V,
    bytes: usize,
}

impl<V: Clone + HeapSize> ExpiringCache<V> {
    /// Creates an empty map with these limits.
    pub(crate) fn new(capacity: NonZeroUsize, bytes_max: usize) -> Self {
        let state = State {
            entries: LruCache::new(capacity),
            capacity: capacity.get(),
            bytes: 0,
        };
        Self {
            bytes_max,
            state: Mutex::new(state),
        }
    }

    /// Value of a key, unless expired.
    pub(crate) fn get(&self, key: &Digest) -> Option<V> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = state.entries.get(key)?;
        (entry.expires > Instant::now()).then(|| entry.value.clone())
    }

    /// Caches a value for `ttl`, unless `ttl` is zero or the value exceeds the map's size limit.
    /// Evicts the least recently used entries.
    pub(crate) fn insert(&self, key: Digest, value: V, ttl: Duration) {
        let Some(expires) = Instant::now().checked_add(ttl) else {
            return;
        };
        let bytes = OVERHEAD.saturating_add(value.heap_size());
        if ttl.is_zero() || bytes > self.bytes_max {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = state.entries.pop(&key) {
            state.bytes -= before.bytes;
        }
        while state.entries.len() >= state.capacity || state.bytes > self.bytes_max - bytes {
            let Some((_, oldest)) = state.entries.pop_lru() else {
                break;
            };
            state.bytes -= oldest.bytes;
        }
        state.bytes += bytes;
        let entry = Entry {
            expires,
            value,
            bytes,
        };
        state.entries.put(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    impl HeapSize for String {
        fn heap_size(&self) -> usize {
            self.len()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn cache(capacity: usize, bytes_max: usize) -> ExpiringCache<String> {
        ExpiringCache::new(NonZeroUsize::new(capacity).unwrap(), bytes_max)
    }

    fn kept(cache: &ExpiringCache<String>, keys: &[&str]) -> Vec<bool> {
        let is_kept = |key: &&str| cache.get(&digest_of(key.as_bytes())).is_some();
        keys.iter().map(is_kept).collect()
    }

    fn insert(cache: &ExpiringCache<String>, key: &str, bytes: usize, ttl: Duration) {
        cache.insert(digest_of(key.as_bytes()), "x".repeat(bytes), ttl);
    }

    #[tokio::test(start_paused = true)]
    async fn entries_expire_individually() {
        let cache = cache(2, 10_000);
        insert(&cache, "short", 1, SECOND);
        insert(&cache, "long", 1, 10 * SECOND);
        assert_eq!(kept(&cache, &["short", "long"]), [true, true]);
        advance(SECOND).await;
        assert_eq!(kept(&cache, &["short", "long"]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_ttl_is_not_cached_and_the_oldest_is_evicted() {
        let cache = cache(1, 10_000);
        insert(&cache, "none", 1, Duration::ZERO);
        assert_eq!(kept(&cache, &["none"]), [false]);
        insert(&cache, "first", 1, SECOND);
        insert(&cache, "second", 1, SECOND);
        assert_eq!(kept(&cache, &["first", "second"]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn large_entries_evict_others_within_limits() {
        let cache = cache(100, 10_000);
        for key in ["a", "b", "c"] {
            insert(&cache, key, 3000, SECOND);
        }
        assert_eq!(kept(&cache, &["a", "b", "c"]), [true, true, true]);
        insert(&cache, "d", 3000, SECOND);
        assert_eq!(
            kept(&cache, &["a", "b", "c", "d"]),
            [false, true, true, true]
        );
        // A value that is too large evicts nothing.
        insert(&cache, "e", 10_000, SECOND);
        assert_eq!(
            kept(&cache, &["b", "c", "d", "e"]),
            [true, true, true, false]
        );
        // Replacing a value frees the old one's size.
        for _ in 0..10 {
            insert(&cache, "b", 3000, SECOND);
        }
        assert_eq!(kept(&cache, &["b", "c", "d"]), [true, true, true]);
    }
}
