//! The controller: informers, a queue, and workers.
//!
//! Upstream: `stateful_set.go`.

mod handlers;
mod resolve;
mod sync;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::informer::Relister;
use statefulset_client::recorder::EventRecorder;
use statefulset_client::rest::RestClient;
use statefulset_client::workqueue::{RateLimiter, WorkQueue};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::error::Error;
use crate::informers::{HasSynced, Informers};
use crate::metrics::ControllerMetrics;
use crate::tasks::{join_all, panics_passed_on};
pub(crate) use handlers::PodHandler;
use handlers::SetHandler;
#[cfg(test)]
pub(crate) use resolve::{overlapping_stateful_sets, stateful_sets_for_pod};
pub use sync::{SetSyncer, SyncerParts};

/// How many sets are synced at once by default.
pub const CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT: NonZeroUsize = NonZeroUsize::new(5).unwrap();

/// How long a set waits whose objects can't all be decoded.
const SET_ASIDE_RETRY: Duration = Duration::from_secs(30);

/// What a controller is given.
pub struct ControllerConfig {
    /// Lists and watches.
    pub informer_client: RestClient,
    /// Reads live and writes.
    pub client: RestClient,
    /// Takes the events.
    pub recorder: Arc<dyn EventRecorder>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What is turned on.
    pub feature_gates: FeatureGates,
    /// How many sets are synced at once.
    pub concurrent_syncs: NonZeroUsize,
    /// How often all cached objects are looked at again, stretched by a random factor of up to 2;
    /// none means never.
    pub resync_period: Option<Duration>,
    /// Where the random parts of delays come from.
    pub seed: u64,
}

/// The StatefulSet controller.
///
/// # Caveats
///
/// Two controllers at once on one cluster disturb each other: run one, or elect a leader.
///
/// Upstream: `StatefulSetController`.
pub struct StatefulSetController {
    /// Those that end with the controller; none where somebody else runs them.
    informers: Option<Informers>,
    relisters: [Relister; 4],
    synced: HasSynced,
    queue: WorkQueue<ObjectKey>,
    syncer: Arc<SetSyncer>,
    concurrent_syncs: NonZeroUsize,
}

impl StatefulSetController {
    /// Makes a controller; nothing happens until it is run, and nothing is counted.
    ///
    /// Upstream: `NewStatefulSetController`.
    pub fn new(config: ControllerConfig) -> Self {
        Self::with_metrics(config, ControllerMetrics::default())
    }

    /// The same, and lets `metrics` count.
    pub fn with_metrics(config: ControllerConfig, metrics: ControllerMetrics) -> Self {
        let mut informers = Informers::new(&config, &metrics);
        let mut controller = Self::with_informers(config, metrics, &mut informers);
        controller.informers = Some(informers);
        controller
    }

    /// The same over informers that others may share, and that the caller runs
    /// ([`Informers::run`]): before the controller runs, as the controllers of other leases may
    /// want it, or together with it. Sets wait in the queue until the controller runs.
    pub fn with_informers(
        config: ControllerConfig,
        metrics: ControllerMetrics,
        informers: &mut Informers,
    ) -> Self {
        let caches = informers.caches();
        let queue = WorkQueue::new(RateLimiter::default(), metrics.queue);
        informers.sets.add_handler(Arc::new(SetHandler {
            queue: queue.clone(),
        }));
        informers.pods.add_handler(Arc::new(PodHandler {
            queue: queue.clone(),
            sets: informers.sets.indexer(),
        }));
        let mut parts = SyncerParts::new(
            caches,
            &config.client,
            config.recorder,
            config.clock,
            Arc::new(SeededJitter::new(config.seed)),
            config.feature_gates,
        );
        parts.metrics = metrics.sets;
        Self {
            informers: None,
            relisters: informers.relisters(),
            synced: informers.has_synced(),
            queue,
            syncer: Arc::new(SetSyncer::new(parts)),
            concurrent_syncs: config.concurrent_syncs,
        }
    }

    /// Tells whether the caches are filled, also while the controller runs.
    pub fn has_synced(&self) -> HasSynced {
        self.synced.clone()
    }

    /// Runs until `cancelled`: waits for the caches to be filled, then syncs. On cancellation the
    /// syncs in progress are finished, and the sets that still wait are dropped.
    ///
    /// Caches that were filled before are filled anew, so that no sync decides on one that is older
    /// than what another leader has done until now.
    ///
    /// Informers that somebody else runs must not end before: without them it ends too, and says so.
    ///
    /// # Panics
    ///
    /// An informer of its own panicked, or a handler of one. A sync that panics is that set's error.
    ///
    /// Upstream: `Run`.
    pub async fn run(self, cancelled: CancellationToken) {
        let cancelled = cancelled.child_token();
        // Asked for before anything is started, so that the first lists will do.
        let [sets, pods, claims, revisions] = self.relisters.each_ref().map(Relister::relist);
        let filled = async { tokio::join!(sets, pods, claims, revisions) };
        // Informers end after the workers, so that no sync sees its caches stand still.
        let stop_informers = CancellationToken::new();
        let start = |informers: Informers| informers.start(&stop_informers);
        let mut informers = self.informers.map(start).unwrap_or_default();

        // Ends with this function.
        let mut reports = JoinSet::new();
        let queue = self.queue.clone();
        reports.spawn(async move { queue.report_unfinished().await });
        if informers.is_empty() {
            reports.spawn(cancel_without(self.relisters.clone(), cancelled.clone()));
        }

        let mut workers = JoinSet::new();
        let filled = cancelled.run_until_cancelled(filled);
        if panics_passed_on(&mut informers, filled).await.is_some() {
            tracing::info!(
                workers = self.concurrent_syncs,
                "ready: caches are filled, starting workers"
            );
            for number in 0..self.concurrent_syncs.get() {
                let (queue, syncer) = (self.queue.clone(), Arc::clone(&self.syncer));
                let span = tracing::info_span!("worker", worker = number);
                workers.spawn(worker(queue, syncer, cancelled.clone()).instrument(span));
            }
            let running = panics_passed_on(&mut workers, cancelled.cancelled());
            panics_passed_on(&mut informers, running).await;
        }
        self.queue.shut_down();
        join_all(&mut workers).await;
        stop_informers.cancel();
        join_all(&mut informers).await;
    }
}

/// Cancels when one of the informers has ended: a cache that stands still must not be decided on.
async fn cancel_without(informers: [Relister; 4], cancelled: CancellationToken) {
    let [sets, pods, claims, revisions] = informers.each_ref().map(Relister::ended);
    tokio::select! {
        () = sets => {}
        () = pods => {}
        () = claims => {}
        () = revisions => {}
    }
    if !cancelled.is_cancelled() {
        tracing::error!("an informer of the controller has ended, and so does the controller");
        cancelled.cancel();
    }
}

/// Syncs one key after the other until the queue ends.
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

/// Syncs one key and says when it is to be synced again.
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
            if let Some(delay) = outcome.requeue_after {
                queue.add_after(key.clone(), delay);
            }
            queue.forget(key);
        }
        Err(error @ Error::StaleCache(_)) => {
            // Expected after each write; the cache catches up by itself.
            tracing::debug!(%error, "cache is behind, requeuing");
            queue.add_rate_limited(key.clone());
        }
        Err(error @ Error::SetAside { .. }) => {
            // No event may tell that it can be decoded again, or is gone.
            syncer.log().failed(key, &error);
            queue.add_after(key.clone(), SET_ASIDE_RETRY);
            queue.forget(key);
        }
        Err(error) => {
            syncer.log().failed(key, &error);
            queue.add_rate_limited(key.clone());
        }
    }
}

#[cfg(test)]
mod tests;
