//! An in-memory status updater whose cache shows every write immediately.

use std::sync::Arc;

use async_trait::async_trait;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::error::Error;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::testing::{Call, RequestTracker};

use crate::stateful_set_status_updater::StatusUpdater;

/// Writes statuses to a cache.
///
/// Upstream: `fakeStatefulSetStatusUpdater`.
pub struct FakeStatusUpdater {
    sets: Arc<Indexer<StatefulSet>>,
    tracker: Arc<RequestTracker>,
}

impl FakeStatusUpdater {
    /// Creates a status updater for the cache of sets, whose calls are counted by a tracker.
    pub fn new(sets: Arc<Indexer<StatefulSet>>, tracker: Arc<RequestTracker>) -> Self {
        Self { sets, tracker }
    }
}

#[async_trait]
impl StatusUpdater for FakeStatusUpdater {
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error> {
        let _request = self.tracker.begin(Call::UpdateStatus)?;
        let mut set = set.clone();
        set.status = Arc::new(status.clone());
        self.sets.update(set);
        Ok(())
    }
}
