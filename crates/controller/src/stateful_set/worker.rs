//! Workers: sync the keys of the queue, and schedule their next syncs.

use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::workqueue::WorkQueue;
use statefulset_set_control::SyncOutcome;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::claim_waits::{ClaimsBeingDeleted, awaited_claims, growing_claims};
use super::sync::SetSyncer;
use crate::error::Error;

/// Retry delay of a set with an undecodable object.
pub(super) const SET_ASIDE_RETRY: Duration = Duration::from_secs(30);

/// Longest retry delay of a set whose caches are behind. The check costs no request, and the events
/// of claims and revisions wake no set.
pub(super) const STALE_CACHE_RETRY_MAX: Duration = Duration::from_secs(1);

/// Longest delay of a set that waits for the removal of a claim. The claim's event wakes it, unless
/// the claim goes between the sync's decision and the record of the wait, or several claims must go.
pub(super) const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);

/// Syncs keys one by one until the queue is shut down.
///
/// Upstream: `worker`.
pub(super) async fn worker(
    queue: WorkQueue<ObjectKey>,
    syncer: Arc<SetSyncer>,
    cancelled: CancellationToken,
) {
    while let Some(key) = queue.get().await {
        if !cancelled.is_cancelled() {
            let span = tracing::info_span!("sync", stateful_set = %key);
            process_next_work_item(&queue, &syncer, &key)
                .instrument(span)
                .await;
        }
        queue.done(&key);
    }
}

/// Syncs one key and schedules its next sync.
///
/// Upstream: `processNextWorkItem`.
pub(crate) async fn process_next_work_item(
    queue: &WorkQueue<ObjectKey>,
    syncer: &SetSyncer,
    key: &ObjectKey,
) {
    let synced = syncer.sync_guarded(key).await;
    requeue(queue, syncer, key, synced);
}

/// Schedules the next sync of a key, and logs the result of this one.
pub(super) fn requeue(
    queue: &WorkQueue<ObjectKey>,
    syncer: &SetSyncer,
    key: &ObjectKey,
    synced: Result<SyncOutcome, Error>,
) {
    match synced {
        Ok(outcome) => {
            if let Some(waiting) = &outcome.waiting {
                tracing::debug!(reason = %waiting, "waiting");
            }
            syncer.log().synced(key, &outcome);
            let claims = awaited_claims(&outcome);
            if !claims.is_empty() {
                queue.add_after(key.clone(), CLAIM_WAIT_MAX);
            }
            if let Some(delay) = outcome.requeue_after {
                queue.add_after(key.clone(), delay);
            }
            queue.forget(key);
            syncer.claim_waits().record(key, claims);
            let (waits, cache) = (syncer.claim_waits(), &syncer.caches().claims);
            if !waits.record_changes(key, growing_claims(&outcome), cache) {
                queue.add(key.clone());
            }
        }
        Err(error @ Error::StaleCache(_)) => {
            // Expected after each write; the cache catches up by itself. Without a cap, every event
            // during the lag would double the delay, which could outlast the lag by minutes.
            tracing::debug!(%error, "cache is behind, requeuing");
            queue.add_backed_off(key.clone(), STALE_CACHE_RETRY_MAX);
        }
        Err(error @ Error::SetAside { .. }) => {
            // No event may report that the object can be decoded again or was deleted.
            syncer.log().failed(key, &error);
            queue.add_after(key.clone(), SET_ASIDE_RETRY);
            queue.forget(key);
        }
        Err(error) => {
            syncer.log().failed(key, &error);
            let waits = ClaimsBeingDeleted::of(&error);
            if waits.claims.is_empty() || waits.has_other_causes {
                queue.add_rate_limited(key.clone());
            } else {
                queue.add_backed_off(key.clone(), CLAIM_WAIT_MAX);
            }
            syncer.claim_waits().record(key, waits.claims);
        }
    }
}
