//! Informers: keep a cache in sync with the API server by list and watch.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::cache::indexer::{CachedObject, Indexer, SharedParts};
use crate::error::Error;
use crate::resource::Resource;
use crate::rest::{MediaType, RestClient, WatchOptions, WatchStream};
use crate::shard::Shard;

pub use metrics::{
    InformerMetrics, InformerMetricsProvider, NoopInformerMetrics, NoopInformerMetricsProvider,
};

pub use relist::Relister;

use backoff::ListBackoff;
use list::{Decoding, list_all};
use relist::Lists;
use report::Reporter;
use scope::Scope;

mod apply;
mod backoff;
mod list;
mod metrics;
mod relist;
mod report;
mod scope;

/// Minimum time that a server keeps a watch open, in seconds; each watch adds a random part.
const WATCH_SECONDS_MIN: u32 = 290;
/// The random part, in seconds, so that a server's watches don't all end together.
const WATCH_SECONDS_SPREAD: u32 = 60;
/// Maximum silence of a watch before it is reopened. Servers send a bookmark about every minute, so
/// the connection may be dead.
const WATCH_SILENCE_MAX: Duration = Duration::from_secs(120);
/// Maximum resync period; longer ones would overflow the clock.
const RESYNC_PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// A watch that ends sooner than this without an event is reopened only after a delay.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Receives a cache's changes after they are stored. Calls are sequential and must not block.
///
/// Upstream: `cache.ResourceEventHandler`.
pub trait EventHandler<K>: Send + Sync {
    /// Called for a new object. `in_initial_list` is true for objects of the first list.
    fn on_add(&self, object: &Arc<K>, in_initial_list: bool);
    /// Called for a changed object, or for a resync (then both states are the same).
    fn on_update(&self, old: &Arc<K>, new: &Arc<K>);
    /// Called for a deleted object. If `final_state_unknown`, the watch missed the deletion, and
    /// this is the last state seen. Later changes, and other objects of the same name, may have
    /// been missed.
    fn on_delete(&self, object: &Arc<K>, final_state_unknown: bool);
    /// Called after a list other than the first, and after its changes: an object may have come and
    /// gone without any other call. By default it does nothing.
    fn on_relisted(&self) {}
}

/// Settings of an informer.
#[derive(Debug, Clone)]
pub struct InformerConfig {
    /// The namespace of the objects; empty for all namespaces.
    pub namespace: String,
    /// The shard of the objects; `None` for all.
    pub shard: Option<Shard>,
    /// Maximum number of objects per page of a list; 0 counts as 1.
    pub page_size: u32,
    /// Interval of resyncs; each informer multiplies it by a random factor from 1 up to 2. None
    /// disables resyncs.
    pub resync_period: Option<Duration>,
    /// Seed of the random delays.
    pub seed: u64,
    /// The parts that objects share, also with those of other informers.
    pub shared_parts: Arc<SharedParts>,
}

impl Default for InformerConfig {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            shard: None,
            page_size: 500,
            resync_period: None,
            seed: 0,
            shared_parts: Arc::default(),
        }
    }
}

/// Lists and watches one resource.
///
/// The initial list is consistent. A watch continues from the last version seen. If the server no
/// longer has that version, the informer lists again and reports objects that vanished in the
/// meantime as deleted. The cache and its version always change before a handler is called.
/// Upstream: `cache.SharedIndexInformer`, `cache.Reflector`.
pub struct Informer<K> {
    client: RestClient,
    resource: Resource,
    scope: Scope,
    page_size: u32,
    /// Preferred format of watches.
    preferred: MediaType,
    /// Format of the next watch.
    media_type: MediaType,
    resync: Option<Resync>,
    indexer: Arc<Indexer<K>>,
    shared_parts: Arc<SharedParts>,
    handlers: Vec<Arc<dyn EventHandler<K>>>,
    synced: watch::Sender<bool>,
    lists: Lists,
    rng: StdRng,
    backoff: ListBackoff,
    reporter: Reporter,
    metrics: Arc<dyn InformerMetrics>,
}

/// Schedule of resyncs.
struct Resync {
    period: Duration,
    next: Instant,
}

/// The way a watch ended.
enum Ended {
    /// Closed normally. A watch without events may be broken.
    Closed { events: usize },
    /// Closed by the informer because of its silence.
    Silent,
    /// Failed; the watch can continue from the last version seen.
    Broken(Error),
    /// Failed; the last version seen has expired.
    Lost(Error),
}

impl<K: CachedObject> Informer<K> {
    /// Creates an informer with an empty cache; it does nothing until [`Informer::run`].
    pub fn new(client: RestClient, resource: Resource, config: &InformerConfig) -> Self {
        let mut rng = StdRng::seed_from_u64(config.seed);
        let resync = config.resync_period.map(|period| {
            let period = period
                .min(RESYNC_PERIOD_MAX)
                .mul_f64(rng.random_range(1.0..2.0));
            Resync {
                period,
                next: Instant::now() + period,
            }
        });
        let preferred = match K::FROM_PROTOBUF {
            Some(_) => client.media_type(),
            None => MediaType::Json,
        };
        Self {
            client,
            resource,
            preferred,
            media_type: preferred,
            scope: Scope {
                namespace: config.namespace.clone(),
                shard: config.shard,
            },
            page_size: config.page_size,
            resync,
            indexer: Arc::new(Indexer::new()),
            shared_parts: Arc::clone(&config.shared_parts),
            handlers: Vec::new(),
            synced: watch::Sender::new(false),
            lists: Lists::default(),
            rng,
            backoff: ListBackoff::default(),
            reporter: Reporter::new(resource.group_resource(), &config.namespace),
            metrics: Arc::new(NoopInformerMetrics),
        }
    }

    /// Reports to `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<dyn InformerMetrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Returns the informer's cache.
    pub fn indexer(&self) -> Arc<Indexer<K>> {
        Arc::clone(&self.indexer)
    }

    /// Adds a handler, called after those added before it.
    pub fn add_handler(&mut self, handler: Arc<dyn EventHandler<K>>) {
        self.handlers.push(handler);
    }

    /// Becomes true, permanently, when the handlers have seen the whole initial list.
    pub fn has_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Returns a handle that makes this informer list again.
    pub fn relister(&self) -> Relister {
        self.lists.relister()
    }

    /// Runs list and watch until the token is cancelled.
    pub async fn run(mut self, cancelled: CancellationToken) {
        cancelled
            .run_until_cancelled(self.list_and_watch_forever())
            .await;
    }

    async fn list_and_watch_forever(&mut self) {
        loop {
            match self.list().await {
                Ok(resource_version) => {
                    self.reporter.recovered();
                    let lists = self.lists.clone();
                    let watch = self.watch(resource_version);
                    if lists.run_until_wanted(watch).await.is_none() {
                        continue;
                    }
                }
                Err(err) => self.reporter.failed("list", &err),
            }
            self.pause().await;
        }
    }

    /// Waits for the current backoff delay.
    async fn pause(&mut self) {
        let delay = self.backoff.next_delay(&mut self.rng);
        sleep(delay).await;
    }

    /// Replaces the cache's content with a new list. Returns the list's version.
    async fn list(&mut self) -> Result<String, Error> {
        let wanted = self.lists.wanted();
        let list = list_all::<K>(
            &self.client,
            &self.resource,
            &self.scope,
            self.page_size,
            &self.decoding(),
        )
        .await?;
        let start = Instant::now();
        let initial = !*self.synced.borrow();
        let replaced =
            self.indexer
                .replace_all(list.objects, list.set_aside, &list.resource_version);
        self.reporter
            .set_aside_in_list(&self.indexer.all_set_aside());
        self.count_set_aside();
        let mut turn = Turn::default();
        for (old, new) in &replaced.present {
            let begun = Instant::now();
            self.notify(|handler| match old {
                Some(old) => handler.on_update(old, new),
                None => handler.on_add(new, initial),
            });
            turn.record(begun).await;
        }
        for gone in &replaced.gone {
            let begun = Instant::now();
            self.notify(|handler| handler.on_delete(gone, true));
            turn.record(begun).await;
        }
        self.processed(start, &list.resource_version);
        if initial {
            let objects = replaced.present.len();
            tracing::debug!(resource = %self.resource.group_resource(), objects, "cache is filled");
            self.synced.send_replace(true);
        } else {
            self.notify(|handler| handler.on_relisted());
        }
        self.lists.made(wanted);
        Ok(list.resource_version)
    }

    /// Watches from a version until a new list is necessary.
    ///
    /// The watch after a broken one is JSON, in which even odd objects can be read one by one.
    async fn watch(&mut self, mut resource_version: String) {
        loop {
            let opened = Instant::now();
            let ended = self.watch_once(&mut resource_version).await;
            self.media_type = match ended {
                Ended::Broken(_) => MediaType::Json,
                Ended::Closed { .. } | Ended::Silent | Ended::Lost(_) => self.preferred,
            };
            match ended {
                Ended::Closed { events } => {
                    self.reporter.recovered();
                    if events > 0 || opened.elapsed() >= SHORT_WATCH {
                        continue;
                    }
                    tracing::debug!(
                        resource = %self.resource.group_resource(),
                        "a watch ended at once without an event"
                    );
                }
                Ended::Silent => {
                    let resource = self.resource.group_resource();
                    tracing::debug!(%resource, "a watch was silent for too long, reopening it");
                    continue;
                }
                Ended::Broken(err) => self.reporter.failed("watch", &err),
                Ended::Lost(err) => {
                    if err.is_expired() {
                        let resource = self.resource.group_resource();
                        tracing::info!(%resource, error = %err, "listing again");
                    } else {
                        self.reporter.failed("watch", &err);
                    }
                    return;
                }
            }
            self.pause().await;
        }
    }

    async fn watch_once(&mut self, resource_version: &mut String) -> Ended {
        let timeout_seconds = WATCH_SECONDS_MIN + self.rng.random_range(0..WATCH_SECONDS_SPREAD);
        let options = WatchOptions {
            namespace: self.scope.namespace.clone(),
            resource_version: resource_version.clone(),
            timeout_seconds,
            allow_bookmarks: true,
            shard_selector: self.scope.shard_selector(),
            media_type: self.media_type,
        };
        let opening = self.client.watch(&self.resource, &options);
        match timeout(WATCH_SILENCE_MAX, opening).await {
            Ok(Ok(stream)) => {
                self.metrics.in_step();
                self.follow(stream, resource_version).await
            }
            Ok(Err(err)) if err.is_transport() || err.is_too_many_requests() => Ended::Broken(err),
            Ok(Err(err)) => Ended::Lost(err),
            Err(_) => Ended::Broken(Error::Timeout {
                action: format!("watch {}", self.resource.group_resource()),
                after: WATCH_SILENCE_MAX,
            }),
        }
    }

    /// Applies the events of a watch until it ends.
    async fn follow(&mut self, mut stream: WatchStream, resource_version: &mut String) -> Ended {
        let mut events = 0;
        let mut turn = Turn::default();
        let mut heard = Instant::now();
        loop {
            let next_resync = self.resync.as_ref().map(|resync| resync.next);
            let event = tokio::select! {
                biased;
                event = stream.next() => event,
                () = until(next_resync) => {
                    self.show_all_again().await;
                    continue;
                }
                () = sleep_until(heard + WATCH_SILENCE_MAX) => return Ended::Silent,
            };
            let event = match event {
                None => return Ended::Closed { events },
                Some(Err(err)) => return stream_error(err, stream.media_type()),
                Some(Ok(event)) => event,
            };
            let begun = Instant::now();
            heard = begun;
            match self.apply_event(event, resource_version) {
                ControlFlow::Continue(()) => events += 1,
                ControlFlow::Break(ended) => return ended,
            }
            self.reporter.recovered();
            turn.record(begun).await;
        }
    }

    fn decoding(&self) -> Decoding<'_, K> {
        Decoding {
            parts: &self.shared_parts,
            indexer: &self.indexer,
        }
    }

    fn count_set_aside(&self) {
        self.metrics.set_aside(self.indexer.set_aside_len());
    }

    fn processed(&self, start: Instant, version: &str) {
        self.metrics.in_step();
        self.metrics.processed(start.elapsed());
        self.metrics.store_version(version);
    }

    /// Sends every object to the handlers as an update to itself.
    async fn show_all_again(&mut self) {
        if let Some(resync) = &mut self.resync {
            resync.next = Instant::now() + resync.period;
        }
        let mut turn = Turn::default();
        for object in self.indexer.list() {
            let begun = Instant::now();
            self.notify(|handler| handler.on_update(&object, &object));
            turn.record(begun).await;
        }
    }

    fn notify(&self, call: impl Fn(&dyn EventHandler<K>)) {
        for handler in &self.handlers {
            call(&**handler);
        }
    }
}

/// The informer's turn on its thread. An orphan's event searches all sets of its namespace, and
/// other caches and workers must not wait for many of them.
#[derive(Default)]
struct Turn {
    busy: Duration,
    objects: usize,
}

impl Turn {
    /// Maximum number of objects of a turn.
    const OBJECTS_MAX: usize = 64;
    /// Maximum time of work in a turn.
    const BUSY_MAX: Duration = Duration::from_millis(1);

    /// Counts an object and the work on it. Yields to other tasks at the end of the turn.
    async fn record(&mut self, begun: Instant) {
        self.objects += 1;
        self.busy += begun.elapsed();
        if self.objects >= Self::OBJECTS_MAX || self.busy >= Self::BUSY_MAX {
            *self = Self::default();
            tokio::task::yield_now().await;
        }
    }
}

/// Returns the end of a watch that failed. The next watch would send an unusable event again, unless
/// that was protobuf: the next one is JSON.
fn stream_error(err: Error, media_type: MediaType) -> Ended {
    match (&err, media_type) {
        (Error::Decode { .. }, MediaType::Json) => Ended::Lost(err),
        _ => Ended::Broken(err),
    }
}

/// Waits until an instant, or forever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
