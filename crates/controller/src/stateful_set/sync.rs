//! One sync of one set.
//!
//! Upstream: `stateful_set.go`, from `sync` to its callees.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kube_apimachinery::json::on_large_stack;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::selector::Selector;
use statefulset_client::backoff::Jitter;
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::EventRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller_util::consistency::{
    Caches, ConsistencyStore, NoopConsistencyStore, RealConsistencyStore,
};
use statefulset_controller_util::controller_ref_manager::{
    PodControllerRefManager, SetReader, can_adopt,
};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::index::orphan_pods_index_key;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::pod_control::{PodControl, RealPodControl};
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::tracked_client::TrackedClient;
use statefulset_history::RealHistory;
use statefulset_opt_ins::SyncRules;
use statefulset_pod_control::stateful_set_utils::membership;
use statefulset_pod_control::{RealObjectManager, StatefulPodControl};
use statefulset_set_control::{
    DefaultStatefulSetControl, RealStatusUpdater, StatefulSetControl, SyncOutcome, Waiting,
};

use super::claim_waits::ClaimWaits;
use crate::error::Error;
use crate::long_computation::{computes_for_long, poll_in_place};
use crate::metrics::{NoopSetMetrics, SetMetrics, Unavailability};
use crate::set_aside::ensure_decoded;
use crate::sync_log::SyncLog;
use crate::tasks::panic_message;

/// Dependencies of a syncer.
#[non_exhaustive]
pub struct SyncerParts {
    /// The caches on which it decides.
    pub caches: Caches,
    /// Reads sets live.
    pub reader: Arc<dyn SetReader>,
    /// Adopts and releases pods.
    pub pod_control: Arc<dyn PodControl>,
    /// Updates sets, their pods and status.
    pub set_control: Arc<dyn StatefulSetControl>,
    /// Delays a sync until the caches show its earlier writes.
    pub consistency: Arc<dyn ConsistencyStore>,
    /// Current time.
    pub clock: Arc<dyn Clock>,
    /// Receives the measurements.
    pub metrics: Arc<dyn SetMetrics>,
}

impl SyncerParts {
    /// Creates the production dependencies, which write through the API. `jitter` spreads retries.
    /// Discards the measurements.
    pub fn new(
        caches: Caches,
        client: &RestClient,
        recorder: Arc<dyn EventRecorder>,
        clock: Arc<dyn Clock>,
        jitter: Arc<dyn Jitter>,
        rules: impl Into<SyncRules>,
    ) -> Self {
        let rules = rules.into();
        let consistency = consistency_store(&caches, rules.gates);
        Self::with_consistency(caches, client, recorder, clock, jitter, rules, consistency)
    }

    /// Same as [`Self::new`], with a store that the caller made.
    pub(crate) fn with_consistency(
        caches: Caches,
        client: &RestClient,
        recorder: Arc<dyn EventRecorder>,
        clock: Arc<dyn Clock>,
        jitter: Arc<dyn Jitter>,
        rules: SyncRules,
        consistency: Arc<dyn ConsistencyStore>,
    ) -> Self {
        let tracked = TrackedClient::new(client.clone(), Arc::clone(&consistency));
        let objects = RealObjectManager::new(tracked.clone(), Arc::clone(&caches.claims));
        let gates = rules.gates;
        let pods = StatefulPodControl::new(Arc::new(objects), recorder, Arc::clone(&jitter), gates);
        let sets = Arc::clone(&caches.sets);
        let status = RealStatusUpdater::new(tracked.clone(), sets, Arc::clone(&jitter));
        let history = RealHistory::new(tracked, Arc::clone(&caches.revisions), jitter);
        let set_control = DefaultStatefulSetControl::new(
            Arc::new(pods),
            Arc::new(status),
            Arc::new(history),
            rules,
        );
        Self {
            caches,
            reader: Arc::new(client.clone()),
            pod_control: Arc::new(RealPodControl::new(
                client.clone(),
                Arc::clone(&consistency),
            )),
            set_control: Arc::new(set_control),
            consistency,
            clock,
            metrics: Arc::new(NoopSetMetrics),
        }
    }

    /// Reads sets live through this reader.
    #[must_use]
    pub fn reader(mut self, reader: Arc<dyn SetReader>) -> Self {
        self.reader = reader;
        self
    }

    /// Adopts and releases pods through this control.
    #[must_use]
    pub fn pod_control(mut self, control: Arc<dyn PodControl>) -> Self {
        self.pod_control = control;
        self
    }

    /// Updates sets, their pods and status through this control.
    #[must_use]
    pub fn set_control(mut self, control: Arc<dyn StatefulSetControl>) -> Self {
        self.set_control = control;
        self
    }

    /// Delays syncs by this store, which the replaced controls must fill.
    #[must_use]
    pub fn consistency(mut self, store: Arc<dyn ConsistencyStore>) -> Self {
        self.consistency = store;
        self
    }

    /// Sends the measurements to this receiver.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn SetMetrics>) -> Self {
        self.metrics = metrics;
        self
    }
}

/// Creates the store that the gates demand.
pub(crate) fn consistency_store(caches: &Caches, gates: FeatureGates) -> Arc<dyn ConsistencyStore> {
    if gates.stale_controller_consistency_stateful_set {
        Arc::new(RealConsistencyStore::new(Arc::new(caches.clone())))
    } else {
        Arc::new(NoopConsistencyStore)
    }
}

/// Syncs sets with caches that the caller fills.
pub struct SetSyncer {
    parts: SyncerParts,
    log: SyncLog,
    claim_waits: Arc<ClaimWaits>,
}

impl SetSyncer {
    /// Creates a syncer from its dependencies; a test can replace some.
    pub fn new(parts: SyncerParts) -> Self {
        Self {
            parts,
            log: SyncLog::default(),
            claim_waits: Arc::default(),
        }
    }

    /// Syncs one set and turns a panic into that set's error.
    ///
    /// # Errors
    ///
    /// An error of [`SetSyncer::sync`], or [`Error::Panicked`].
    pub async fn sync_guarded(&self, key: &ObjectKey) -> Result<SyncOutcome, Error> {
        // Shared state changes in single steps, under locks that survive a panic.
        let sync = AssertUnwindSafe(self.sync(key));
        sync.catch_unwind().await.unwrap_or_else(|panic| {
            self.parts.metrics.sync_panicked();
            let message = panic_message(&*panic);
            Err(Error::Panicked { message })
        })
    }

    /// Returns the caches.
    pub(crate) fn caches(&self) -> &Caches {
        &self.parts.caches
    }

    /// Returns the log of the sets' syncs.
    pub(crate) fn log(&self) -> &SyncLog {
        &self.log
    }

    /// Returns the sets that wait for the removal of a claim.
    pub(crate) fn claim_waits(&self) -> &Arc<ClaimWaits> {
        &self.claim_waits
    }

    /// Syncs one set: adopts orphaned revisions, claims pods, and takes one step. A missing set, or
    /// one with an invalid selector, needs no further sync.
    ///
    /// # Errors
    ///
    /// The failure. The caller must sync the set again later.
    ///
    /// Upstream: `sync`.
    pub async fn sync(&self, key: &ObjectKey) -> Result<SyncOutcome, Error> {
        let parts = &self.parts;
        if let Err(stale) = parts.consistency.ensure_ready(key) {
            parts.metrics.stale_sync_skipped(stale.resource());
            return Err(stale.into());
        }
        parts.metrics.sync_started(key, &parts.caches);
        let set = parts.caches.sets.get(key.namespace(), key.name());
        if set.is_some() || parts.caches.sets.is_set_aside(key.namespace(), key.name()) {
            ensure_decoded(&parts.caches, key)?;
        }
        let Some(set) = set else {
            tracing::debug!("set has been deleted");
            parts.consistency.clear(key);
            parts.metrics.gone(key);
            return Ok(Waiting::SetGone.into());
        };
        let selector = match set.spec.selector.compiled() {
            Ok(selector) => selector,
            Err(error) => {
                // Only the user can fix it, so a retry is useless.
                tracing::error!(%error, "cannot convert the set's selector");
                let reason = error.to_string().into();
                return Ok(Waiting::InvalidSelector(reason).into());
            }
        };
        let revisions = parts.set_control.list_revisions(&set)?;
        let is_deep = set.metadata.is_deep || revisions.iter().any(|revision| revision.is_deep);
        let sync = self.sync_stateful_set(&set, selector, revisions);
        if is_deep {
            poll_in_place(on_large_stack(sync)).await
        } else if computes_for_long(&set) {
            poll_in_place(sync).await
        } else {
            sync.await
        }
    }

    /// Upstream: `syncStatefulSet`.
    async fn sync_stateful_set(
        &self,
        set: &StatefulSet,
        selector: &Selector,
        mut revisions: Vec<Arc<ControllerRevision>>,
    ) -> Result<SyncOutcome, Error> {
        let parts = &self.parts;
        self.adopt_orphan_revisions(set, &mut revisions).await?;
        let pods = self.pods_for_stateful_set(set, selector).await?;
        let now = parts.clock.now();
        let updated = parts
            .set_control
            .update_stateful_set(set, revisions, &pods, now);
        let mut outcome = updated.await;
        if let Some(max) = outcome.max_unavailable {
            let current = outcome.unavailable_replicas;
            let policy = set.spec.pod_management_policy;
            let unavailability = Unavailability { max, current };
            parts.metrics.counted(&set.key(), policy, unavailability);
        }
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        let status = outcome.status.as_ref();
        let next = status.and_then(|status| self.requeue_after(set, status, &pods, now));
        outcome.requeue_within(next);
        Ok(outcome)
    }

    /// Adopts the orphans among these revisions, if the live set allows it.
    ///
    /// Upstream: `adoptOrphanRevisions`.
    pub(crate) async fn adopt_orphan_revisions(
        &self,
        set: &StatefulSet,
        revisions: &mut [Arc<ControllerRevision>],
    ) -> Result<(), Error> {
        if revisions
            .iter()
            .all(|revision| revision.controller.is_some())
        {
            return Ok(());
        }
        can_adopt(&*self.parts.reader, set)
            .await
            .map_err(Error::CanAdoptRevisions)?;
        let adopted = self
            .parts
            .set_control
            .adopt_orphan_revisions(set, revisions);
        Ok(adopted.await?)
    }

    /// Returns the pods that the set controls, after claiming them. Considers only its own pods and
    /// orphans with a matching name.
    ///
    /// Upstream: `getPodsForStatefulSet`.
    pub(crate) async fn pods_for_stateful_set(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Result<Vec<Arc<Pod>>, Error> {
        let pods = &self.parts.caches.pods;
        let mut candidates = pods.by_index(&set.owned_index_key());
        candidates.extend(pods.by_index(&orphan_pods_index_key(set.namespace(), set.name())));
        let membership = |pod: &Pod| membership(set, pod);
        let (pod_control, reader) = (&*self.parts.pod_control, &*self.parts.reader);
        let manager = PodControllerRefManager::new(set, selector, &membership, pod_control, reader);
        Ok(manager.claim_pods(candidates).await?)
    }

    /// Returns the delay until the next ready pod becomes available, which no event reports.
    fn requeue_after(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Option<Duration> {
        let seconds = set.spec.min_ready_seconds;
        if seconds <= 0 || status.ready_replicas == status.available_replicas {
            return None;
        }
        let next = pods
            .iter()
            .filter_map(|pod| pod.readiness.available_at(seconds))
            .filter(|moment| *moment > now)
            .min();
        Some(match next {
            None => Duration::from_secs(seconds.unsigned_abs().into()),
            Some(moment) => Duration::try_from(moment.duration_since(self.parts.clock.now()))
                .unwrap_or_default(),
        })
    }
}
