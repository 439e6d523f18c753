//! The queue of keys to sync: each key once, never by two workers, failures with growing delays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

pub use metrics::{NoopQueueMetrics, QueueMetrics};
pub use rate_limiter::RateLimiter;

use state::State;

mod metrics;
mod rate_limiter;
mod state;

/// A deduplicating first-in-first-out queue with delayed and rate-limited adds.
///
/// A key that is added while it waits is not added twice. A key that is added while a worker has it
/// is handed out again after that worker calls [`WorkQueue::done`]. Handles are cheap to clone and
/// share the queue. Time is tokio's.
/// Upstream: `workqueue.TypedRateLimitingInterface`.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    /// Wakes the waiting workers when there is something new to look at.
    changed: Notify,
    metrics: Arc<dyn QueueMetrics>,
}

/// How long the keys that workers have at this moment are being worked on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Over all of them.
    pub total: Duration,
    /// Of the one that takes longest.
    pub longest: Duration,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Clone + Ord> WorkQueue<K> {
    /// An empty queue.
    pub fn new(rate_limiter: RateLimiter<K>, metrics: Arc<dyn QueueMetrics>) -> Self {
        let state = Mutex::new(State::new(rate_limiter));
        Self {
            shared: Arc::new(Shared {
                state,
                changed: Notify::new(),
                metrics,
            }),
        }
    }

    /// Adds a key, unless it waits already.
    pub fn add(&self, key: K) {
        let added = self.state().add(key, Instant::now(), &*self.shared.metrics);
        if added {
            self.shared.changed.notify_waiters();
        }
    }

    /// Adds a key after a delay. Of several delays for one key the earliest end counts; an
    /// immediate add changes none of them.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.state()
            .add_after(key, delay, Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// Adds a key after a failure, with the delay that the rate limiter gives it.
    pub fn add_rate_limited(&self, key: K) {
        let now = Instant::now();
        let mut state = self.state();
        let delay = state.rate_limiter.when(&key, now);
        state.add_after(key, delay, now, &*self.shared.metrics);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Waits for a key and takes it; the caller must call [`WorkQueue::done`] with it. None once
    /// the queue is shut down and empty. Dropping the future loses no key.
    pub async fn get(&self) -> Option<K> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // From here on a change is seen, also one before the await.
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

    /// Says that the caller is through with a key. If it was added meanwhile, it waits again.
    pub fn done(&self, key: &K) {
        self.state()
            .done(key, Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.state().rate_limiter.forget(key);
    }

    /// How often a key has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.state().rate_limiter.num_requeues(key)
    }

    /// How many keys wait, not counting those with a delay or with a worker.
    pub fn len(&self) -> usize {
        self.state().len(Instant::now(), &*self.shared.metrics)
    }

    /// True if no key waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: later adds are ignored and delayed keys are dropped; keys that wait are
    /// still handed out, then [`WorkQueue::get`] gives none.
    pub fn shut_down(&self) {
        self.state()
            .shut_down(Instant::now(), &*self.shared.metrics);
        self.shared.changed.notify_waiters();
    }

    /// True after [`WorkQueue::shut_down`].
    pub fn shutting_down(&self) -> bool {
        self.state().shutting_down()
    }

    /// How long the keys in work have been so. Upstream: `updateUnfinishedWork`.
    pub fn unfinished(&self) -> Unfinished {
        self.state()
            .unfinished(Instant::now(), &*self.shared.metrics)
    }

    /// Tells the metrics how long the keys in work have been so, as often as they ask for, until
    /// the queue is shut down.
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

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
