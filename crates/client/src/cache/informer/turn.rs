//! Turns of informers on their thread.

use std::time::Duration;

use tokio::time::Instant;

/// The informer's turn on its thread. An orphan's event searches all sets of its namespace, and
/// other caches and workers must not wait for many of them.
#[derive(Default)]
pub(super) struct Turn {
    busy: Duration,
    objects: usize,
}

impl Turn {
    /// Maximum number of objects of a turn.
    const OBJECTS_MAX: usize = 64;
    /// Maximum time of work in a turn.
    pub(super) const BUSY_MAX: Duration = Duration::from_millis(1);

    /// Counts an object and the work on it. Yields to other tasks at the end of the turn.
    pub(super) async fn record(&mut self, begun: Instant) {
        self.objects += 1;
        self.busy += begun.elapsed();
        if self.objects >= Self::OBJECTS_MAX || self.busy >= Self::BUSY_MAX {
            *self = Self::default();
            tokio::task::yield_now().await;
        }
    }
}
