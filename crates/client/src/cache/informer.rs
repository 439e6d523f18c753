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
use crate::rest::{MediaType, RestClient, Selectors, WatchOptions, WatchStream};
use crate::shard::Shard;

pub use handler::EventHandler;
pub use metrics::{
    InformerMetrics, InformerMetricsProvider, NoopInformerMetrics, NoopInformerMetricsProvider,
};

pub use relist::Relister;

use apply::{Applier, Ended};
use backoff::ListBackoff;
use list::list_all;
use relist::Lists;
use report::Reporter;
use scope::Scope;
use turn::Turn;

mod apply;
mod backoff;
mod handler;
mod list;
mod metrics;
mod relist;
mod report;
mod scope;
mod turn;

/// Minimum time that a server keeps a watch open, in seconds; each watch adds a random part.
const WATCH_SECONDS_MIN: u32 = 290;
/// The random part, in seconds, so that a server's watches don't all end together.
const WATCH_SECONDS_SPREAD: u32 = 60;
/// Maximum silence of a watch before it is reopened. Servers send a bookmark about every minute, so
/// the connection may be dead.
const WATCH_SILENCE_MAX: Duration = Duration::from_secs(120);
/// Maximum resync period; longer ones would overflow the clock.
const RESYNC_PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Default of the maximum number of objects per page of a list, as in client-go.
pub const PAGE_SIZE_DEFAULT: u32 = 500;
/// A watch that ends sooner than this without an event is reopened only after a delay.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Settings of an informer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerConfig {
    /// The namespace of the objects; empty for all namespaces.
    pub namespace: String,
    /// The shard of the objects; `None` for all.
    pub shard: Option<Shard>,
    /// The labels and fields of the objects.
    pub selectors: Selectors,
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
            selectors: Selectors::default(),
            page_size: PAGE_SIZE_DEFAULT,
            resync_period: None,
            seed: 0,
            shared_parts: Arc::default(),
        }
    }
}

impl InformerConfig {
    /// Sets the namespace of the objects; empty for all namespaces.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the shard of the objects.
    #[must_use]
    pub fn shard(mut self, shard: impl Into<Option<Shard>>) -> Self {
        self.shard = shard.into();
        self
    }

    /// Sets the labels and fields of the objects.
    #[must_use]
    pub fn selectors(mut self, selectors: Selectors) -> Self {
        self.selectors = selectors;
        self
    }

    /// Sets the maximum number of objects per page of a list; 0 counts as 1.
    #[must_use]
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = page_size;
        self
    }

    /// Sets the interval of resyncs, before the random factor; `None` disables resyncs.
    #[must_use]
    pub fn resync_period(mut self, resync_period: impl Into<Option<Duration>>) -> Self {
        self.resync_period = resync_period.into();
        self
    }

    /// Sets the seed of the random delays.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Shares parts of objects with other informers.
    #[must_use]
    pub fn shared_parts(mut self, shared_parts: Arc<SharedParts>) -> Self {
        self.shared_parts = shared_parts;
        self
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
    page_size: u32,
    /// Preferred format of watches.
    preferred: MediaType,
    /// Format of the next watch.
    media_type: MediaType,
    resync: Option<Resync>,
    applier: Applier<K>,
    synced: watch::Sender<bool>,
    lists: Lists,
    rng: StdRng,
    backoff: ListBackoff,
}

/// Schedule of resyncs.
struct Resync {
    period: Duration,
    next: Instant,
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
            page_size: config.page_size,
            resync,
            applier: Applier {
                resource,
                scope: Scope {
                    namespace: config.namespace.clone(),
                    shard: config.shard,
                    selectors: config.selectors.clone(),
                },
                indexer: Arc::new(Indexer::new()),
                shared_parts: Arc::clone(&config.shared_parts),
                handlers: Vec::new(),
                reporter: Reporter::new(resource.group_resource(), &config.namespace),
                metrics: Arc::new(NoopInformerMetrics),
            },
            synced: watch::Sender::new(false),
            lists: Lists::default(),
            rng,
            backoff: ListBackoff::default(),
        }
    }

    /// Reports to `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<dyn InformerMetrics>) -> Self {
        self.applier.metrics = metrics;
        self
    }

    /// Returns the informer's cache.
    pub fn indexer(&self) -> Arc<Indexer<K>> {
        Arc::clone(&self.applier.indexer)
    }

    /// Adds a handler, called after those added before it.
    pub fn add_handler(&mut self, handler: Arc<dyn EventHandler<K>>) {
        self.applier.handlers.push(handler);
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
                    self.applier.reporter.recovered();
                    let lists = self.lists.clone();
                    let watch = self.watch(resource_version);
                    if lists.run_until_wanted(watch).await.is_none() {
                        continue;
                    }
                }
                Err(err) => self.applier.reporter.failed("list", &err),
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
            &self.applier.scope,
            self.page_size,
            &self.applier.decoding(),
        )
        .await?;
        let initial = !*self.synced.borrow();
        let version = self.applier.apply_list(list, initial).await;
        if initial {
            self.synced.send_replace(true);
        }
        self.lists.made(wanted);
        Ok(version)
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
                    self.applier.reporter.recovered();
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
                Ended::Broken(err) => self.applier.reporter.failed("watch", &err),
                Ended::Lost(err) => {
                    if err.is_expired() {
                        let resource = self.resource.group_resource();
                        tracing::info!(%resource, error = %err, "listing again");
                    } else {
                        self.applier.reporter.failed("watch", &err);
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
            namespace: self.applier.scope.namespace.clone(),
            resource_version: resource_version.clone(),
            timeout_seconds,
            allow_bookmarks: true,
            shard_selector: self.applier.scope.shard_selector(),
            media_type: self.media_type,
            selectors: self.applier.scope.selectors.clone(),
        };
        let opening = self.client.watch(&self.resource, &options);
        match timeout(WATCH_SILENCE_MAX, opening).await {
            Ok(Ok(stream)) => {
                self.applier.metrics.in_step();
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
                    if let Some(resync) = &mut self.resync {
                        resync.next = Instant::now() + resync.period;
                    }
                    self.applier.show_all_again().await;
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
            match self.applier.apply_event(event, resource_version) {
                ControlFlow::Continue(()) => events += 1,
                ControlFlow::Break(ended) => return ended,
            }
            self.applier.reporter.recovered();
            turn.record(begun).await;
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
