//! The shadow of another StatefulSet controller: decides on every event as if it led, writes
//! nothing, and compares its decisions with the other controller's writes.
//!
//! Each decision is a [dry sync](crate::dry) on a copy of the set's cached objects. The other
//! controller's writes show in the same watches that fill the caches. A write that no decision
//! explains is compared again with a decision on the objects before the write, so that it doesn't
//! matter which program sees an event first.

mod comparator;
mod events;
mod journal;
mod observable_write;
mod open_comparisons;
mod snapshot;
mod watch;

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::informer::{PAGE_SIZE_DEFAULT, Relister};
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::rest::RestClient;
use statefulset_client::shard::Shard;
use statefulset_client::workqueue::{RateLimiter, WorkQueue};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::informers::{HasSynced, InformerScope, InformerSettings, Informers};
use crate::metrics::{ControllerMetrics, QUEUE_NAME};
use crate::stateful_set::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, PodHandler, RESYNC_PERIOD_DEFAULT, SetHandler,
};
use crate::tasks::{join_all, unless_panicked};
use comparator::Comparator;
pub use journal::Journal;
use watch::{ComparisonsBySet, Observer};

/// Settings of a shadow. They should be those of the other controller.
#[derive(Clone)]
#[non_exhaustive]
pub struct ShadowSettings {
    /// Feature gates, and the emulated version.
    pub feature_gates: FeatureGates,
    /// Number of sets that are compared in parallel.
    pub concurrent_syncs: NonZeroUsize,
    /// Time between two resyncs; `None` disables resyncs.
    pub resync_period: Option<Duration>,
    /// Seed of random delays.
    pub seed: u64,
    /// The shard of the namespaces; `None` for all.
    pub shard: Option<Shard>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Receives the measurements of queue and caches.
    pub metrics: ControllerMetrics,
}

impl Default for ShadowSettings {
    /// Upstream's defaults, without metrics.
    fn default() -> Self {
        Self {
            feature_gates: FeatureGates::default(),
            concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
            resync_period: Some(RESYNC_PERIOD_DEFAULT),
            seed: RandomState::new().hash_one(QUEUE_NAME),
            shard: None,
            clock: Arc::new(SystemClock),
            metrics: ControllerMetrics::default(),
        }
    }
}

impl ShadowSettings {
    /// Sets the feature gates, and the emulated version.
    #[must_use]
    pub fn feature_gates(mut self, gates: FeatureGates) -> Self {
        self.feature_gates = gates;
        self
    }

    /// Sets the number of sets that are compared in parallel.
    #[must_use]
    pub fn concurrent_syncs(mut self, number: NonZeroUsize) -> Self {
        self.concurrent_syncs = number;
        self
    }

    /// Sets the time between two resyncs; `None` disables resyncs.
    #[must_use]
    pub fn resync_period(mut self, period: Option<Duration>) -> Self {
        self.resync_period = period;
        self
    }

    /// Fixes the seed of random delays.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Limits the shadow to a shard of the namespaces.
    #[must_use]
    pub fn shard(mut self, shard: Option<Shard>) -> Self {
        self.shard = shard;
        self
    }

    /// Reads the time from another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sends the measurements of queue and caches to these receivers.
    #[must_use]
    pub fn metrics(mut self, metrics: ControllerMetrics) -> Self {
        self.metrics = metrics;
        self
    }
}

/// The shadow of another controller.
///
/// It lists and watches, and reads events; it has no code that writes. Give it a client that is
/// [read-only](statefulset_client::config::ClientOptions::is_read_only), so that not even a bug can
/// write.
pub struct Shadow {
    informers: Informers,
    queue: WorkQueue<ObjectKey>,
    comparator: Arc<Comparator>,
    concurrent_syncs: NonZeroUsize,
}

impl Shadow {
    /// Creates a shadow that writes its results into the journal. It does nothing until it runs.
    pub fn new(client: &RestClient, settings: ShadowSettings, journal: Journal) -> Self {
        let ShadowSettings {
            feature_gates,
            concurrent_syncs,
            resync_period,
            seed,
            shard,
            clock,
            metrics,
        } = settings;
        let informer_settings = InformerSettings {
            scope: InformerScope {
                namespace: String::new(),
                shard,
                resync_period,
            },
            page_size: PAGE_SIZE_DEFAULT,
            seed,
        };
        let mut informers = Informers::new(client, informer_settings, &metrics);
        let queue = WorkQueue::new(RateLimiter::default(), metrics.queue);
        let comparisons: Arc<ComparisonsBySet> = Arc::default();
        let observer = Arc::new(Observer {
            comparisons: Arc::clone(&comparisons),
            queue: queue.clone(),
            sets: informers.sets.indexer(),
            clock: Arc::clone(&clock),
            strays: Arc::new(Mutex::default()),
        });
        // A write is recorded before its set is queued.
        informers.sets.add_handler(Arc::clone(&observer) as _);
        informers.pods.add_handler(Arc::clone(&observer) as _);
        informers.claims.add_handler(Arc::clone(&observer) as _);
        informers.revisions.add_handler(observer);
        informers.sets.add_handler(Arc::new(SetHandler {
            queue: queue.clone(),
        }));
        informers.pods.add_handler(Arc::new(PodHandler {
            queue: queue.clone(),
            sets: informers.sets.indexer(),
        }));
        let comparator = Comparator {
            caches: informers.caches(),
            client: client.clone(),
            comparisons,
            queue: queue.clone(),
            clock,
            gates: feature_gates,
            journal,
        };
        Self {
            informers,
            queue,
            comparator: Arc::new(comparator),
            concurrent_syncs,
        }
    }

    /// Returns a check for filled caches.
    pub fn has_synced(&self) -> HasSynced {
        self.informers.has_synced()
    }

    /// Compares until `shutdown` completes.
    ///
    /// # Errors
    ///
    /// A task panicked, which is a bug.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let stop = CancellationToken::new();
        let [sets, pods, claims, revisions] =
            self.informers.relisters().each_ref().map(Relister::relist);
        let mut tasks = self.informers.start(&stop);
        let (queue, comparator) = (self.queue.clone(), self.comparator);
        let compare = async move {
            tokio::join!(sets, pods, claims, revisions);
            comparator.begin();
            tracing::info!("ready: caches are filled, comparing decisions");
            let mut workers = JoinSet::new();
            for _ in 0..self.concurrent_syncs.get() {
                workers.spawn(worker(self.queue.clone(), Arc::clone(&comparator)));
            }
            join_all(&mut workers).await
        };
        let work = async {
            tokio::select! {
                biased;
                () = shutdown => Ok(()),
                result = compare => result,
            }
        };
        let worked = unless_panicked(&mut tasks, Box::pin(work)).await.flatten();
        queue.shut_down();
        stop.cancel();
        worked.and(join_all(&mut tasks).await)
    }
}

async fn worker(queue: WorkQueue<ObjectKey>, comparator: Arc<Comparator>) {
    while let Some(key) = queue.get().await {
        comparator.compare(&key).await;
        queue.done(&key);
    }
}
