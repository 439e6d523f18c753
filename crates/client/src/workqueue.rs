//! The queue of keys to sync: deduplicated, one worker per key, backoff after failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

pub use metrics::{NoopQueueMetrics, QueueMetrics, Unfinished};
pub use rate_limiter::RateLimiter;

use state::QueueState;

mod metrics;
mod rate_limiter;
mod state;

/// A deduplicating first-in-first-out queue with delayed and rate-limited adds.
///
/// A queued key is not added twice. A key added while a worker processes it is returned again after
/// [`WorkQueue::done`]. Clones are cheap and share the queue. Time is tokio's.
/// Upstream: `workqueue.TypedRateLimitingInterface`.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<QueueState<K>>,
    /// Wakes waiting workers after a change.
    changed: Notify,
    metrics: Arc<dyn QueueMetrics>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Ord> WorkQueue<K> {
    /// Creates an empty queue.
    pub fn new(rate_limiter: RateLimiter<K>, metrics: Arc<dyn QueueMetrics>) -> Self {
        let state = Mutex::new(QueueState::new(rate_limiter));
        Self {
            shared: Arc::new(Shared {
                state,
                changed: Notify::new(),
                metrics,
            }),
        }
    }

    /// Adds a key unless it is already queued.
    pub fn add(&self, key: K) {
        let added = self.state().add(key, Instant::now(), &*self.shared.metrics);
        if added {
            self.shared.changed.notify_waiters();
        }
    }

    /// Adds a key after a delay. Of several delays for one key the earliest applies; an immediate
    /// add doesn't change them.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.state()
            .add_after(key, delay, Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// Adds a key after a failure, with the rate limiter's delay.
    pub fn add_rate_limited(&self, key: K) {
        let now = Instant::now();
        let mut state = self.state();
        let delay = state.rate_limiter.when(&key, now);
        state.add_after(key, delay, now, &*self.shared.metrics);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Adds a key that waits for something expected, with its own growing delay, at most `delay_max`.
    /// Many such keys at a time delay neither each other nor those that failed.
    pub fn add_backed_off(&self, key: K, delay_max: Duration) {
        let now = Instant::now();
        let mut state = self.state();
        let delay = state.rate_limiter.own_delay(&key, delay_max);
        state.add_after(key, delay, now, &*self.shared.metrics);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Waits for a key and removes it from the queue; the caller must call [`WorkQueue::done`] with
    /// it. Returns none after the queue is shut down and empty. Dropping the future loses no key.
    pub async fn get(&self) -> Option<K> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Register before checking the queue, so that no change before the await is missed.
            changed.as_mut().enable();
            let next_deadline = {
                let mut state = self.state();
                let key = state.take(Instant::now(), &*self.shared.metrics);
                if key.is_some() || state.shutting_down() {
                    return key;
                }
                state.next_deadline()
            };
            match next_deadline {
                Some(deadline) => drop(timeout_at(deadline, changed).await),
                None => changed.await,
            }
        }
    }

    /// Marks a key as processed. A key added in the meantime is queued again.
    pub fn done(&self, key: &K) {
        self.state()
            .done(key, Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// Resets a key's failures.
    pub fn forget(&self, key: &K) {
        self.state().rate_limiter.forget(key);
    }

    /// Returns the number of a key's failures since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.state().rate_limiter.num_requeues(key)
    }

    /// Returns the number of queued keys, without delayed keys and keys being processed.
    pub fn len(&self) -> usize {
        self.state().len(Instant::now(), &*self.shared.metrics)
    }

    /// Returns true if no key is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shuts the queue down: later adds are ignored, and delayed keys are dropped. Queued keys are
    /// still returned, then [`WorkQueue::get`] returns none.
    pub fn shut_down(&self) {
        self.state()
            .shut_down(Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// Returns true after [`WorkQueue::shut_down`].
    pub fn shutting_down(&self) -> bool {
        self.state().shutting_down()
    }

    /// Returns the processing time of the current keys. Upstream: `updateUnfinishedWork`.
    pub fn unfinished(&self) -> Unfinished {
        self.state()
            .unfinished(Instant::now(), &*self.shared.metrics)
    }

    /// Reports the processing time of the current keys to the metrics at their refresh period,
    /// until the queue is shut down.
    ///
    /// Upstream: `updateUnfinishedWorkLoop`.
    pub async fn report_unfinished(&self) {
        let metrics = &self.shared.metrics;
        let Some(period) = metrics.refresh_period() else {
            return;
        };
        while !self.shutting_down() {
            metrics.unfinished(self.unfinished());
            sleep(period).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<K>> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
