//! An in-memory status updater whose cache shows every write immediately.

use std::sync::Arc;

use async_trait::async_trait;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::error::Error;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::testing::RequestTracker;

use crate::stateful_set_status_updater::StatusUpdater;

/// Writes statuses to a cache.
///
/// Upstream: `fakeStatefulSetStatusUpdater`.
pub struct FakeStatusUpdater {
    sets: Arc<Indexer<StatefulSet>>,
    /// Calls that write a status.
    pub update_tracker: RequestTracker,
}

impl FakeStatusUpdater {
    /// Creates a status updater for the cache of sets.
    pub fn new(sets: Arc<Indexer<StatefulSet>>) -> Self {
        Self {
            sets,
            update_tracker: RequestTracker::default(),
        }
    }
}

#[async_trait]
impl StatusUpdater for FakeStatusUpdater {
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error> {
        let _request = self.update_tracker.begin()?;
        let mut set = set.clone();
        set.status = Arc::new(status.clone());
        self.sets.update(set);
        Ok(())
    }
}
