//! The controller with its informers, queue and workers.
//!
//! Upstream: `stateful_set.go`.

mod builder;
mod claim_waits;
mod connection;
mod election;
mod events;
mod handlers;
mod resolve;
mod sync;

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::informer::Relister;
use statefulset_client::workqueue::WorkQueue;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::error::{Error, RunError};
use crate::informers::{HasSynced, Informers};
use crate::tasks::{join_all, unless_panicked};
pub use builder::{
    Builder, CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, RESYNC_PERIOD_DEFAULT, StatefulSetController,
};
use claim_waits::{ClaimsBeingDeleted, awaited_claims};
pub use connection::{BuildError, LeaderElection};
use election::Election;
use events::Events;
pub use handlers::PodHandler;
pub(crate) use handlers::{ClaimHandler, SetHandler};
#[cfg(test)]
pub(crate) use resolve::{overlapping_stateful_sets, stateful_sets_for_pod};
pub use sync::{SetSyncer, SyncerParts};

/// Retry delay of a set with an undecodable object.
const SET_ASIDE_RETRY: Duration = Duration::from_secs(30);

/// Longest retry delay of a set whose caches are behind. The check costs no request, and the events
/// of claims and revisions wake no set.
const STALE_CACHE_RETRY_MAX: Duration = Duration::from_secs(1);

/// Longest delay of a set that waits for the removal of a claim. The claim's event wakes it, unless
/// the claim goes between the sync's decision and the record of the wait, or several claims must go.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);

/// Time limit for sending queued events at shutdown.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(3);

/// The parts of a controller, which run together.
struct ControllerParts {
    /// The informers that stop with the controller; `None` if the caller runs them.
    informers: Option<Informers>,
    events: Option<Events>,
    election: Option<Election>,
    shutdown_timeout: Option<Duration>,
    relisters: [Relister; 4],
    synced: HasSynced,
    queue: WorkQueue<ObjectKey>,
    syncer: Arc<SetSyncer>,
    concurrent_syncs: NonZeroUsize,
}

impl ControllerParts {
    fn new(
        parts: SyncerParts,
        queue: WorkQueue<ObjectKey>,
        informers: &mut Informers,
        concurrent_syncs: NonZeroUsize,
    ) -> Self {
        informers.sets.add_handler(Arc::new(SetHandler {
            queue: queue.clone(),
        }));
        informers.pods.add_handler(Arc::new(PodHandler {
            queue: queue.clone(),
            sets: informers.sets.indexer(),
        }));
        let syncer = Arc::new(SetSyncer::new(parts));
        informers.claims.add_handler(Arc::new(ClaimHandler {
            queue: queue.clone(),
            waits: Arc::clone(syncer.claim_waits()),
        }));
        Self {
            informers: None,
            events: None,
            election: None,
            shutdown_timeout: None,
            relisters: informers.relisters(),
            synced: informers.has_synced(),
            queue,
            syncer,
            concurrent_syncs,
        }
    }

    /// Runs until `shutdown` completes.
    async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let stop = CancellationToken::new();
        let election = self.election.take();
        let work = Box::pin(self.run_with_events(stop.clone()));
        let led = async {
            match election {
                Some(election) => Box::pin(election.run(&stop, work)).await,
                None => work.await,
            }
        };
        let cancel = async {
            shutdown.await;
            stop.cancel();
        };
        let mut led = pin!(led);
        tokio::select! {
            // Informers that stop at the same shutdown are not a failure.
            biased;
            () = cancel => led.await,
            result = &mut led => result,
        }
    }

    async fn run_with_events(mut self, stop: CancellationToken) -> Result<(), RunError> {
        let stop_events = CancellationToken::new();
        let sending = self.events.take().map(|events| events.send(&stop_events));
        let mut sinks = sending.unwrap_or_default();
        let shutdown_timeout = self.shutdown_timeout;
        let too_late = async {
            stop.cancelled().await;
            match shutdown_timeout {
                Some(timeout) => sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let work = async {
            tokio::select! {
                biased;
                result = self.run_workers(&stop) => result,
                () = too_late => Err(RunError::ShutdownTimeout),
            }
        };
        let result = unless_panicked(&mut sinks, Box::pin(work)).await.flatten();
        // The syncer held the recorder, so the sink stops once its queue is empty.
        if timeout(EVENT_FLUSH_MAX, sinks.join_next()).await.is_err() {
            tracing::warn!("some events could not be sent in time");
            stop_events.cancel();
        }
        result
    }

    async fn run_workers(self, stop: &CancellationToken) -> Result<(), RunError> {
        let stop = stop.child_token();
        // Requested before the informers start, so their first lists suffice.
        let [sets, pods, claims, revisions] = self.relisters.each_ref().map(Relister::relist);
        let filled = async { tokio::join!(sets, pods, claims, revisions) };
        let ended = async { Err(any_ended(&self.relisters).await) };
        // Informers stop after the workers, so no sync decides on outdated caches.
        let stop_informers = CancellationToken::new();
        let is_shared = self.informers.is_none();
        let start = |informers: Informers| informers.start(&stop_informers);
        let mut informers = self.informers.map(start).unwrap_or_default();

        // Stops when this function returns.
        let mut reports = JoinSet::new();
        let queue = self.queue.clone();
        reports.spawn(async move { queue.report_unfinished().await });

        let mut workers = JoinSet::new();
        let work = async {
            if stop.run_until_cancelled(filled).await.is_none() {
                return Ok(());
            }
            tracing::info!(
                workers = self.concurrent_syncs,
                "ready: caches are filled, starting workers"
            );
            for number in 0..self.concurrent_syncs.get() {
                let (queue, syncer) = (self.queue.clone(), Arc::clone(&self.syncer));
                let span = tracing::info_span!("worker", worker = number);
                workers.spawn(worker(queue, syncer, stop.clone()).instrument(span));
            }
            unless_panicked(&mut workers, stop.cancelled()).await
        };
        let work = async {
            tokio::select! {
                biased;
                result = work => result,
                result = ended, if is_shared => result,
            }
        };
        let worked = unless_panicked(&mut informers, Box::pin(work))
            .await
            .flatten();
        stop.cancel();
        self.queue.shut_down();
        let workers_ended = join_all(&mut workers).await;
        stop_informers.cancel();
        let informers_ended = join_all(&mut informers).await;
        worked.and(workers_ended).and(informers_ended)
    }
}

/// Waits until a shared informer stops, because no sync may decide on a cache that no longer
/// changes.
async fn any_ended(informers: &[Relister; 4]) -> RunError {
    let [sets, pods, claims, revisions] = informers.each_ref().map(Relister::ended);
    tokio::select! {
        () = sets => {}
        () = pods => {}
        () = claims => {}
        () = revisions => {}
    }
    RunError::InformerEnded
}

/// Syncs keys one by one until the queue is shut down.
///
/// Upstream: `worker`.
async fn worker(queue: WorkQueue<ObjectKey>, syncer: Arc<SetSyncer>, cancelled: CancellationToken) {
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
    match syncer.sync_guarded(key).await {
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

#[cfg(test)]
mod tests;
