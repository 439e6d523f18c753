//! The controller: informers, a queue, and workers.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::backoff::{Jitter, SeededJitter};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::EventRecorder;
use statefulset_client::rest::RestClient;
use statefulset_client::workqueue::{RateLimiter, WorkQueue};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::error::Error;
use crate::handlers::{PodHandler, SetHandler};
use crate::informers::Informers;
use crate::metrics::ControllerMetrics;
use crate::sync::{SetSyncer, SyncerParts};

/// How many sets are synced at once by default.
pub const CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT: NonZeroUsize = NonZeroUsize::new(5).unwrap();

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
    informers: Informers,
    queue: WorkQueue<ObjectKey>,
    syncer: Arc<SetSyncer>,
    concurrent_syncs: NonZeroUsize,
}

/// Tells whether the caches of a controller are filled, such as for a readiness probe.
///
/// Upstream: `cache.InformerSynced`.
#[derive(Debug, Clone)]
pub struct HasSynced([watch::Receiver<bool>; 4]);

impl HasSynced {
    /// Whether all caches have been filled; once they have, they stay so.
    pub fn get(&self) -> bool {
        self.0.iter().all(|filled| *filled.borrow())
    }
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
        let informers = Informers::new(&config, &metrics);
        Self::with_informers(config, metrics, informers)
    }

    /// The same with informers that others may share: those of [`Informers::new`], with handlers
    /// added and indexers kept as others like. The controller runs them, and ends them when it
    /// ends.
    pub fn with_informers(
        config: ControllerConfig,
        metrics: ControllerMetrics,
        mut informers: Informers,
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
        let jitter: Arc<dyn Jitter> = Arc::new(SeededJitter::new(config.seed));
        let mut parts = SyncerParts::new(
            caches,
            &config.client,
            config.recorder,
            config.clock,
            &jitter,
            config.feature_gates,
        );
        parts.metrics = metrics.sets;
        let concurrent_syncs = config.concurrent_syncs;
        let syncer = Arc::new(SetSyncer::new(parts));
        Self {
            informers,
            queue,
            syncer,
            concurrent_syncs,
        }
    }

    /// Tells whether the caches are filled, also while the controller runs.
    pub fn has_synced(&self) -> HasSynced {
        HasSynced([
            self.informers.sets.has_synced(),
            self.informers.pods.has_synced(),
            self.informers.claims.has_synced(),
            self.informers.revisions.has_synced(),
        ])
    }

    /// Runs until `cancelled`: fills the caches, then syncs. On cancellation the syncs in progress
    /// are finished, and the sets that still wait are dropped.
    ///
    /// # Panics
    ///
    /// A worker or an informer panicked.
    ///
    /// Upstream: `Run`.
    pub async fn run(self, cancelled: CancellationToken) {
        let HasSynced(mut synced) = self.has_synced();
        let Informers {
            sets,
            pods,
            claims,
            revisions,
        } = self.informers;
        // Informers end after the workers, so that no sync sees its caches stand still.
        let stop_informers = CancellationToken::new();
        let mut informers = JoinSet::new();
        informers.spawn(sets.run(stop_informers.clone()));
        informers.spawn(pods.run(stop_informers.clone()));
        informers.spawn(claims.run(stop_informers.clone()));
        informers.spawn(revisions.run(stop_informers.clone()));

        // Ends with this function.
        let mut reports = JoinSet::new();
        let queue = self.queue.clone();
        reports.spawn(async move { queue.report_unfinished().await });

        let mut workers = JoinSet::new();
        let filled = cancelled.run_until_cancelled(wait_for_caches(&mut synced));
        if panics_passed_on(&mut informers, filled).await.is_some() {
            tracing::info!(
                workers = self.concurrent_syncs,
                "ready: caches are filled, starting workers"
            );
            for worker in 0..self.concurrent_syncs.get() {
                let (queue, syncer) = (self.queue.clone(), Arc::clone(&self.syncer));
                let span = tracing::info_span!("worker", worker);
                workers.spawn(work(queue, syncer, cancelled.clone()).instrument(span));
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

/// Waits for `future`, or for a task that panics: a controller that has lost a worker or a cache
/// must not go on as if it had them, so its panic becomes this one's.
async fn panics_passed_on<T>(tasks: &mut JoinSet<()>, future: impl Future<Output = T>) -> T {
    let watch = async {
        join_all(tasks).await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        output = future => output,
        never = watch => never,
    }
}

/// Waits until all tasks have ended.
///
/// # Panics
///
/// One of them did.
async fn join_all(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn wait_for_caches(synced: &mut [watch::Receiver<bool>]) {
    for receiver in synced {
        if receiver.wait_for(|filled| *filled).await.is_err() {
            // The informer has panicked, which is passed on by whoever watches it.
            std::future::pending::<()>().await;
        }
    }
}

/// Syncs one key after the other until the queue ends.
async fn work(queue: WorkQueue<ObjectKey>, syncer: Arc<SetSyncer>, cancelled: CancellationToken) {
    while let Some(key) = queue.get().await {
        if !cancelled.is_cancelled() {
            let span = tracing::info_span!("sync", stateful_set = %key);
            process(&queue, &syncer, &key).instrument(span).await;
        }
        queue.done(&key);
    }
}

/// Syncs one key and says when it is to be synced again.
///
/// Upstream: `processNextWorkItem`.
pub(crate) async fn process(queue: &WorkQueue<ObjectKey>, syncer: &SetSyncer, key: &ObjectKey) {
    match syncer.sync(key).await {
        Ok(synced) => {
            if let Some(waiting) = &synced.waiting {
                tracing::debug!(reason = %waiting, "waiting");
            }
            syncer.log().synced(key, &synced);
            if let Some(delay) = synced.requeue_after {
                queue.add_after(key.clone(), delay);
            }
            queue.forget(key);
        }
        Err(error @ Error::StaleCache(_)) => {
            // Expected after each write; the cache catches up by itself.
            tracing::debug!(%error, "cache is behind, requeuing");
            queue.add_rate_limited(key.clone());
        }
        Err(error) => {
            syncer.log().failed(key, &error);
            queue.add_rate_limited(key.clone());
        }
    }
}

#[cfg(test)]
mod tests;
