//! Rate limits for each object's events.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lru::LruCache;

use super::{EventType, ObjectReference, event::Event};
use crate::token_bucket::TokenBucket;

/// Number of events about one object allowed in a burst.
const BURST: u32 = 25;
/// Seconds per event after the burst.
const SECONDS_PER_EVENT: f64 = 300.0;

/// Events with the same key share one bucket.
type Key = (Arc<str>, Arc<ObjectReference>, EventType);

/// A rate limit for each object and event type.
///
/// Upstream: `EventSourceObjectSpamFilter`.
#[derive(Debug)]
pub(super) struct SpamFilter {
    budgets: LruCache<Key, TokenBucket>,
}

impl SpamFilter {
    pub(super) fn new(entries_max: NonZeroUsize) -> Self {
        Self {
            budgets: LruCache::new(entries_max),
        }
    }

    /// Returns true if the event is within the limit, and consumes a token.
    pub(super) fn accepts(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (
            Arc::clone(&event.component),
            Arc::clone(&event.object),
            event.severity,
        );
        let now = Duration::from_nanos(u64::try_from(now.as_nanosecond()).unwrap_or(0));
        if let Some(bucket) = self.budgets.get_mut(&key) {
            return bucket.try_accept(now);
        }
        let mut bucket = TokenBucket::new(1.0 / SECONDS_PER_EVENT, BURST);
        let accepted = bucket.try_accept(now);
        self.budgets.put(key, bucket);
        accepted
    }
}
