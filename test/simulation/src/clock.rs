//! Clocks of the instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane::clock::{Clock, TokioClock};

/// The wall clock of an instance: the API server's clock plus a skew that the run may change.
#[derive(Clone)]
pub struct SkewedClock {
    cluster: TokioClock,
    millis: Arc<AtomicI64>,
}

impl SkewedClock {
    /// Creates a clock without skew.
    pub fn new(cluster: TokioClock) -> Self {
        Self {
            cluster,
            millis: Arc::default(),
        }
    }

    /// Sets the skew in milliseconds.
    pub fn set_skew(&self, millis: i64) {
        self.millis.store(millis, Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let skew = SignedDuration::from_millis(self.millis.load(Ordering::Relaxed));
        let now = self.cluster.now();
        now.checked_add(skew).unwrap_or(now)
    }
}
