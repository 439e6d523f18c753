//! The controller's four caches, which other controllers of the process can share.

use std::sync::Arc;
use std::time::Duration;

use statefulset_client::cache::indexer::SharedParts;
use statefulset_client::cache::informer::{Informer, InformerConfig, Relister};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS,
};
use statefulset_client::rest::RestClient;
use statefulset_client::shard::Shard;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::metrics::ControllerMetrics;
use crate::tasks::join_all;

/// The controller's informers. Other controllers can add handlers before they run and share their
/// indexers, so that each object is watched and cached once. Created by
/// [`Builder::make_informers`](crate::Builder::make_informers); the caller runs them.
///
/// Upstream: `NewStatefulSetController`, whose caller passes the informers.
pub struct Informers {
    /// Sets.
    pub sets: Informer<StatefulSet>,
    /// Pods.
    pub pods: Informer<Pod>,
    /// Claims.
    pub claims: Informer<Claim>,
    /// Revisions.
    pub revisions: Informer<ControllerRevision>,
    scope: InformerScope,
}

/// What a controller relies on in its informers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct InformerScope {
    /// The namespace of the objects; empty for all namespaces.
    pub(crate) namespace: String,
    /// The shard of the objects; `None` for all.
    pub(crate) shard: Option<Shard>,
    /// Time between two resyncs; `None` disables resyncs.
    pub(crate) resync_period: Option<Duration>,
}

impl InformerScope {
    /// Returns the first setting that differs.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        if self.namespace != other.namespace {
            return Some("namespace");
        }
        if self.shard != other.shard {
            return Some("shard");
        }
        (self.resync_period != other.resync_period).then_some("resync period")
    }
}

/// Settings that all informers share.
#[derive(Clone)]
pub(crate) struct InformerSettings {
    /// The objects and their resyncs.
    pub(crate) scope: InformerScope,
    /// Maximum number of objects per page of a list.
    pub(crate) page_size: u32,
    /// Seed of random delays.
    pub(crate) seed: u64,
}

impl Informers {
    /// Creates informers that list and watch only once they run.
    pub(crate) fn new(
        client: &RestClient,
        settings: InformerSettings,
        metrics: &ControllerMetrics,
    ) -> Self {
        let client = || client.clone();
        // A set and its revisions hold nearly the same template, and its pods the same owner.
        let shared_parts: Arc<SharedParts> = Arc::default();
        let InformerSettings {
            scope,
            page_size,
            seed,
        } = settings;
        let config = |stream: u64| {
            InformerConfig::default()
                .namespace(scope.namespace.clone())
                .shard(scope.shard)
                .page_size(page_size)
                .shared_parts(Arc::clone(&shared_parts))
                .resync_period(scope.resync_period)
                .seed(seed.wrapping_add(stream))
        };
        let counts = |resource| metrics.informers.informer(resource);
        Self {
            sets: Informer::new(client(), STATEFUL_SETS, &config(1))
                .with_metrics(counts(&STATEFUL_SETS)),
            pods: Informer::new(client(), PODS, &config(2)).with_metrics(counts(&PODS)),
            claims: Informer::new(client(), PERSISTENT_VOLUME_CLAIMS, &config(3))
                .with_metrics(counts(&PERSISTENT_VOLUME_CLAIMS)),
            revisions: Informer::new(client(), CONTROLLER_REVISIONS, &config(4))
                .with_metrics(counts(&CONTROLLER_REVISIONS)),
            scope,
        }
    }

    /// Lists and watches until `cancelled`. A controller that uses the informers should stop first,
    /// so that no sync decides on outdated caches.
    ///
    /// # Errors
    ///
    /// An informer or a handler panicked.
    ///
    /// Upstream: `SharedInformerFactory.Start`, which does not wait.
    pub async fn run(self, cancelled: CancellationToken) -> Result<(), RunError> {
        join_all(&mut self.start(&cancelled)).await
    }

    pub(crate) fn start(self, cancelled: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.sets.run(cancelled.clone()));
        tasks.spawn(self.pods.run(cancelled.clone()));
        tasks.spawn(self.claims.run(cancelled.clone()));
        tasks.spawn(self.revisions.run(cancelled.clone()));
        tasks
    }

    /// Returns the settings that a controller must share.
    pub(crate) fn scope(&self) -> &InformerScope {
        &self.scope
    }

    /// Returns a check for filled caches.
    pub(crate) fn has_synced(&self) -> HasSynced {
        HasSynced::of([
            self.sets.has_synced(),
            self.pods.has_synced(),
            self.claims.has_synced(),
            self.revisions.has_synced(),
        ])
    }

    /// Returns the handles that trigger a new list.
    pub(crate) fn relisters(&self) -> [Relister; 4] {
        [
            self.sets.relister(),
            self.pods.relister(),
            self.claims.relister(),
            self.revisions.relister(),
        ]
    }

    /// Returns the informers' caches.
    pub fn caches(&self) -> Caches {
        Caches {
            pods: self.pods.indexer(),
            claims: self.claims.indexer(),
            sets: self.sets.indexer(),
            revisions: self.revisions.indexer(),
        }
    }
}

/// Reports whether a controller's caches are filled, for example for a readiness probe.
///
/// Upstream: `cache.InformerSynced`.
#[derive(Debug, Clone)]
pub struct HasSynced(Box<[watch::Receiver<bool>]>);

impl HasSynced {
    pub(crate) fn of(filled: impl Into<Box<[watch::Receiver<bool>]>>) -> Self {
        Self(filled.into())
    }

    /// Waits until all caches have been filled, or forever if one will never be.
    pub(crate) async fn wait(&self) {
        for filled in &self.0 {
            if filled.clone().wait_for(|filled| *filled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// True once all caches have been filled.
    pub fn get(&self) -> bool {
        self.0.iter().all(|filled| *filled.borrow())
    }
}
