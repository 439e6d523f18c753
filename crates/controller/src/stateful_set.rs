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
mod served;
mod sync;
mod worker;

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

use crate::error::RunError;
use crate::informers::{HasSynced, Informers};
use crate::tasks::{join_all, unless_panicked};
pub use builder::{
    Builder, CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, RESYNC_PERIOD_DEFAULT, StatefulSetController,
};
pub use connection::{BuildError, LeaderElection};
use election::Election;
use events::Events;
pub use handlers::PodHandler;
pub(crate) use handlers::{ClaimHandler, SetHandler};
#[cfg(test)]
pub(crate) use resolve::{overlapping_stateful_sets, stateful_sets_for_pod};
use served::ServedWork;
pub use sync::{SetSyncer, SyncerParts};
#[cfg(test)]
pub(crate) use worker::process_next_work_item;
use worker::worker;

/// Time limit for sending queued events at shutdown.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(3);

/// The parts of a controller, which run together.
struct ControllerParts {
    events: Option<Events>,
    election: Option<Election>,
    shutdown_timeout: Option<Duration>,
    synced: HasSynced,
    work: Work,
}

/// The informers and workers of a controller.
enum Work {
    /// One cache of each resource.
    Whole(Box<WholeWork>),
    /// The caches of single namespaces, which come and go.
    Served(Box<ServedWork>),
}

/// Informers and workers with one cache of each resource.
struct WholeWork {
    /// The informers that stop with the controller; `None` if the caller runs them.
    informers: Option<Informers>,
    relisters: [Relister; 4],
    queue: WorkQueue<ObjectKey>,
    syncer: Arc<SetSyncer>,
    concurrent_syncs: NonZeroUsize,
}

impl WholeWork {
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
            relisters: informers.relisters(),
            queue,
            syncer,
            concurrent_syncs,
        }
    }

    async fn run(self, stop: &CancellationToken) -> Result<(), RunError> {
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

impl ControllerParts {
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
                result = self.work.run(&stop) => result,
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
}

impl Work {
    async fn run(self, stop: &CancellationToken) -> Result<(), RunError> {
        match self {
            Self::Whole(work) => work.run(stop).await,
            Self::Served(work) => work.run(stop).await,
        }
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

#[cfg(test)]
mod tests;
