//! Writes of a set's status.

use std::sync::Arc;

use async_trait::async_trait;
use statefulset_client::backoff::{DEFAULT_RETRY, Jitter, wait};
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::error::Error;
use statefulset_controller_util::stateful_set::{Conditions, StatefulSet, StatefulSetStatus};
use statefulset_controller_util::tracked_client::TrackedClient;

#[cfg(test)]
mod tests;

/// Writes a set's status.
///
/// Upstream: `StatefulSetStatusUpdaterInterface`.
#[async_trait]
pub trait StatusUpdater: Send + Sync {
    /// Writes a status. Retries a conflict with the set in the cache.
    ///
    /// # Errors
    ///
    /// An error from the API server or the transport; the last conflict after 5 attempts.
    ///
    /// Upstream: `UpdateStatefulSetStatus`.
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
    ) -> Result<(), Error>;
}

/// Writes statuses to the API server.
///
/// Upstream: `realStatefulSetStatusUpdater`.
pub struct RealStatusUpdater {
    client: TrackedClient,
    sets: Arc<Indexer<StatefulSet>>,
    jitter: Arc<dyn Jitter>,
}

impl RealStatusUpdater {
    /// Creates a status updater; `jitter` spreads its retries.
    ///
    /// Upstream: `NewRealStatefulSetStatusUpdater`.
    pub fn new(
        client: TrackedClient,
        sets: Arc<Indexer<StatefulSet>>,
        jitter: Arc<dyn Jitter>,
    ) -> Self {
        Self {
            client,
            sets,
            jitter,
        }
    }
}

#[async_trait]
impl StatusUpdater for RealStatusUpdater {
    async fn update_stateful_set_status(
        &self,
        set: &StatefulSet,
        computed: &StatefulSetStatus,
    ) -> Result<(), Error> {
        let (mut set, mut status) = (set.clone(), computed.clone());
        let computed_from = Arc::clone(&set.status);
        let mut delays = DEFAULT_RETRY.delays(&*self.jitter);
        loop {
            let error = match self.client.replace_status(&set, &status).await {
                Err(error) if error.is_conflict() && wait(&mut delays).await => error,
                other => return other,
            };
            match self.sets.get(set.namespace(), set.name()) {
                // A recreated set must not get its predecessor's status.
                Some(cached) if cached.uid() != set.uid() => return Err(error),
                Some(cached) => {
                    status.conditions = Conditions::carried_over(
                        computed_from.conditions.as_ref(),
                        computed.conditions.as_ref(),
                        cached.status.conditions.as_ref(),
                    );
                    set = StatefulSet::clone(&cached);
                }
                None => {
                    tracing::error!(stateful_set = %set.key(), "set left the cache during a status conflict");
                }
            }
        }
    }
}
