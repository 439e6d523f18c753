//! Answers of the API server about users, remembered for a while.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// The length of a SHA-256 digest.
const DIGEST_LEN: usize = 32;
/// An entry's own share: its digest, its times, its places in two maps.
const OVERHEAD: usize = 256;

/// The digest of a question. No token and no name is kept as a key, and a long one costs no more
/// than a short one.
pub(crate) type Digest = [u8; DIGEST_LEN];

/// Digests a question.
pub(crate) fn digest_of(question: &[u8]) -> Digest {
    let mut bytes = [0; DIGEST_LEN];
    bytes.copy_from_slice(digest(&SHA256, question).as_ref());
    bytes
}

/// The bytes that a value holds outside of itself.
pub(crate) trait HeapSize {
    /// About how many.
    fn heap_size(&self) -> usize;
}

/// A map, bounded in entries and in bytes, whose entries expire, each in its own time.
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
    /// An empty map that holds at most this many entries and bytes.
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

    /// The value of a key, if it has not expired.
    pub(crate) fn get(&self, key: &Digest) -> Option<V> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = state.entries.get(key)?;
        (entry.expires > Instant::now()).then(|| entry.value.clone())
    }

    /// Remembers a value for a while; not at all if that is no time, or if the value is larger than
    /// the map may be. What was used least recently makes room.
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
    async fn an_entry_expires_in_its_own_time() {
        let cache = cache(2, 10_000);
        insert(&cache, "short", 1, SECOND);
        insert(&cache, "long", 1, 10 * SECOND);
        assert_eq!(kept(&cache, &["short", "long"]), [true, true]);
        advance(SECOND).await;
        assert_eq!(kept(&cache, &["short", "long"]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_is_not_remembered_and_the_oldest_goes_first() {
        let cache = cache(1, 10_000);
        insert(&cache, "none", 1, Duration::ZERO);
        assert_eq!(kept(&cache, &["none"]), [false]);
        insert(&cache, "first", 1, SECOND);
        insert(&cache, "second", 1, SECOND);
        assert_eq!(kept(&cache, &["first", "second"]), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn large_entries_push_out_others_but_never_all() {
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
        // What doesn't fit leaves the rest alone.
        insert(&cache, "e", 10_000, SECOND);
        assert_eq!(
            kept(&cache, &["b", "c", "d", "e"]),
            [true, true, true, false]
        );
        // A value that replaces another one of its key gives that one's room back.
        for _ in 0..10 {
            insert(&cache, "b", 3000, SECOND);
        }
        assert_eq!(kept(&cache, &["b", "c", "d"]), [true, true, true]);
    }
}
