//! The queue without its lock and its waiting.
//!
//! Delayed keys need no separate task. Every operation first moves the keys that are due into the
//! queue, so the order equals that of an exact timer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::metrics::{QueueMetrics, Unfinished};
use super::rate_limiter::RateLimiter;

/// Maximum delay; it only prevents overflow of time arithmetic.
const DELAY_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The time at which a delayed key is due; the number keeps the order of equal times.
type Due = (Instant, u64);

pub(super) struct QueueState<K> {
    queue: VecDeque<K>,
    /// The keys that need a worker, with the time since when. Includes keys added again while a
    /// worker processes them.
    dirty: BTreeMap<K, Instant>,
    /// The keys being processed, with their start time.
    processing: BTreeMap<K, Instant>,
    delayed: BTreeMap<Due, K>,
    /// The due times by key.
    due: BTreeMap<K, Due>,
    delayed_count: u64,
    shutting_down: bool,
    pub(super) rate_limiter: RateLimiter<K>,
}

impl<K: Clone + Ord> QueueState<K> {
    pub(super) fn new(rate_limiter: RateLimiter<K>) -> Self {
        Self {
            queue: VecDeque::new(),
            dirty: BTreeMap::new(),
            processing: BTreeMap::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            delayed_count: 0,
            shutting_down: false,
            rate_limiter,
        }
    }

    /// Adds a key. Returns true if a worker may have something to do.
    pub(super) fn add(&mut self, key: K, now: Instant, metrics: &dyn QueueMetrics) -> bool {
        if self.shutting_down {
            return false;
        }
        self.promote(now, metrics);
        self.mark(key, now, metrics);
        true
    }

    pub(super) fn add_after(
        &mut self,
        key: K,
        delay: Duration,
        now: Instant,
        metrics: &dyn QueueMetrics,
    ) {
        if self.shutting_down {
            return;
        }
        metrics.retried();
        self.promote(now, metrics);
        if delay.is_zero() {
            self.mark(key, now, metrics);
            return;
        }
        self.delayed_count += 1;
        let due = (now + delay.min(DELAY_MAX), self.delayed_count);
        if let Some(old) = self.due.get(&key) {
            if old.0 <= due.0 {
                return;
            }
            self.delayed.remove(old);
        }
        self.due.insert(key.clone(), due);
        self.delayed.insert(due, key);
    }

    pub(super) fn take(&mut self, now: Instant, metrics: &dyn QueueMetrics) -> Option<K> {
        self.promote(now, metrics);
        let key = self.queue.pop_front()?;
        let since = self.dirty.remove(&key).unwrap_or(now);
        metrics.got(now.saturating_duration_since(since));
        self.processing.insert(key.clone(), now);
        Some(key)
    }

    pub(super) fn done(&mut self, key: &K, now: Instant, metrics: &dyn QueueMetrics) {
        self.promote(now, metrics);
        if let Some(since) = self.processing.remove(key) {
            metrics.done(now.saturating_duration_since(since));
            if self.dirty.contains_key(key) {
                self.queue.push_back(key.clone());
            }
        }
    }

    pub(super) fn len(&mut self, now: Instant, metrics: &dyn QueueMetrics) -> usize {
        self.promote(now, metrics);
        self.queue.len()
    }

    pub(super) fn shut_down(&mut self, now: Instant, metrics: &dyn QueueMetrics) {
        self.promote(now, metrics);
        self.shutting_down = true;
        self.delayed.clear();
        self.due.clear();
    }

    pub(super) fn shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Returns the time at which the next delayed key is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.delayed
            .first_key_value()
            .map(|((deadline, _), _)| *deadline)
    }

    pub(super) fn unfinished(&mut self, now: Instant, metrics: &dyn QueueMetrics) -> Unfinished {
        // While all workers are busy, no other call moves due keys.
        self.promote(now, metrics);
        let times = self
            .processing
            .values()
            .map(|since| now.saturating_duration_since(*since));
        times.fold(Unfinished::default(), |sum, time| Unfinished {
            total: sum.total + time,
            longest: sum.longest.max(time),
        })
    }

    /// Moves delayed keys that are due into the queue.
    fn promote(&mut self, now: Instant, metrics: &dyn QueueMetrics) {
        while let Some(entry) = self.delayed.first_entry() {
            let deadline = entry.key().0;
            if deadline > now {
                return;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.mark(key, deadline, metrics);
        }
    }

    /// Marks a key as waiting for a worker since a given time.
    fn mark(&mut self, key: K, since: Instant, metrics: &dyn QueueMetrics) {
        if self.dirty.contains_key(&key) {
            return;
        }
        metrics.added();
        self.dirty.insert(key.clone(), since);
        if !self.processing.contains_key(&key) {
            self.queue.push_back(key);
        }
    }
}
