//! An in-memory set control with its dependencies.

use std::sync::Arc;

use jiff::Timestamp;
use statefulset_client::backoff::NoJitter;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::{EventRecorder, FakeRecorder};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::fake::FakeHistory;
use statefulset_pod_control::fake::FakeObjectManager;
use statefulset_pod_control::{ObjectManager, StatefulPodControl};

use crate::fake::FakeStatusUpdater;
use crate::outcome::SyncOutcome;
use crate::stateful_set_control::{DefaultStatefulSetControl, StatefulSetControl};

/// A cluster whose caches show every write immediately: the production set and pod control with
/// fakes.
///
/// Upstream: `setupController`.
pub struct World {
    /// Pods, claims and sets.
    pub objects: Arc<FakeObjectManager>,
    /// Revisions.
    pub history: Arc<FakeHistory>,
    /// Writes statuses to the stored sets.
    pub status: Arc<FakeStatusUpdater>,
    /// Events.
    pub recorder: Arc<FakeRecorder>,
    /// Creates, repairs and deletes the pods.
    pub pods: Arc<StatefulPodControl>,
    /// The set control under test.
    pub control: DefaultStatefulSetControl,
    /// Current time; constant unless a test changes it.
    pub now: Timestamp,
}

impl World {
    /// Creates an empty cluster.
    pub fn new(gates: FeatureGates) -> Self {
        let objects = Arc::new(FakeObjectManager::default());
        let recorder = Arc::new(FakeRecorder::new());
        let manager: Arc<dyn ObjectManager> = Arc::<FakeObjectManager>::clone(&objects);
        let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
        let pods = StatefulPodControl::new(manager, events, Arc::new(NoJitter));
        let pods = Arc::new(pods);
        let status = Arc::new(FakeStatusUpdater::new(Arc::clone(&objects.sets)));
        let history = Arc::new(FakeHistory::default());
        let control = DefaultStatefulSetControl::new(
            Arc::clone(&pods),
            Arc::<FakeStatusUpdater>::clone(&status),
            Arc::<FakeHistory>::clone(&history),
            gates,
        );
        Self {
            objects,
            history,
            status,
            recorder,
            pods,
            control,
            now: "2026-03-01T12:00:00Z"
                .parse()
                .expect("the constant is a timestamp"),
        }
    }

    /// Returns the stored set.
    pub fn stored(&self, set: &StatefulSet) -> StatefulSet {
        let stored = self.objects.sets.get(set.namespace(), set.name());
        StatefulSet::clone(&stored.unwrap_or_else(|| panic!("set {} is not stored", set.key())))
    }

    /// Stores a set.
    pub fn store(&self, set: &StatefulSet) {
        self.objects.sets.add(set.clone());
    }

    /// Syncs the set with the given pods.
    pub async fn reconcile(&self, set: &StatefulSet, pods: &[Arc<Pod>]) -> SyncOutcome {
        let revisions = match self.control.list_revisions(set) {
            Ok(revisions) => revisions,
            Err(error) => return error.into(),
        };
        let updated = self
            .control
            .update_stateful_set(set, revisions, pods, self.now);
        updated.await
    }
}
