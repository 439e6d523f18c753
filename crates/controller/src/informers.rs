//! The four caches, which other controllers of the process may share.

use statefulset_client::informer::{Informer, InformerConfig};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS,
};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::metrics::ControllerMetrics;
use crate::stateful_set_controller::ControllerConfig;

/// What the controller watches, in all namespaces. Before they are handed to a controller, others
/// add handlers of their own and keep the indexers, so that everything is watched and kept once.
///
/// Upstream: the informers that `NewStatefulSetController` is given.
pub struct Informers {
    /// Sets.
    pub sets: Informer<StatefulSet>,
    /// Pods.
    pub pods: Informer<Pod>,
    /// Claims.
    pub claims: Informer<Claim>,
    /// Revisions.
    pub revisions: Informer<ControllerRevision>,
}

impl Informers {
    /// Informers that list and watch nothing until a controller runs with them.
    pub fn new(config: &ControllerConfig, metrics: &ControllerMetrics) -> Self {
        let client = || config.informer_client.clone();
        let settings = |stream: u64| InformerConfig {
            resync_period: config.resync_period,
            seed: config.seed.wrapping_add(stream),
            ..InformerConfig::default()
        };
        let counts = |resource| metrics.informers.informer(resource);
        Self {
            sets: Informer::new(client(), STATEFUL_SETS, &settings(1))
                .with_metrics(counts(&STATEFUL_SETS)),
            pods: Informer::new(client(), PODS, &settings(2)).with_metrics(counts(&PODS)),
            claims: Informer::new(client(), PERSISTENT_VOLUME_CLAIMS, &settings(3))
                .with_metrics(counts(&PERSISTENT_VOLUME_CLAIMS)),
            revisions: Informer::new(client(), CONTROLLER_REVISIONS, &settings(4))
                .with_metrics(counts(&CONTROLLER_REVISIONS)),
        }
    }

    /// What they fill.
    pub fn caches(&self) -> Caches {
        Caches {
            pods: self.pods.indexer(),
            claims: self.claims.indexer(),
            sets: self.sets.indexer(),
            revisions: self.revisions.indexer(),
        }
    }
}
