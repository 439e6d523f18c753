//! A controller with a fake API and in-memory objects, and drivers for its queue.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use serde_json::Value;
use statefulset_client::cache::informer::EventHandler as _;
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::{FakeClientset, Verb};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{PODS, STATEFUL_SETS};
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter, WorkQueue};
use statefulset_controller_util::consistency::{Caches, NoopConsistencyStore};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::pod_control::RealPodControl;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream;
use statefulset_history::fake::FakeHistory;
use statefulset_pod_control::fake::{FakeObjectManager, stateful_set_pod};
use statefulset_pod_control::{ObjectManager as _, Timing};
use statefulset_set_control::testing::{World, invariants};

use crate::SyncOutcome;
use crate::error::Error;
use crate::metrics::NoopSetMetrics;
use crate::stateful_set::{PodHandler, SetSyncer, SyncerParts, process_next_work_item};

/// Timeout of a worker that waits for an expected key.
const PATIENCE: Duration = Duration::from_secs(1);

/// The controller's dependencies, with the fakes' caches and without informers.
///
/// Pods are adopted and released through the API, not the fakes, and the live set is read there.
///
/// Upstream: `newFakeStatefulSetController`.
pub(super) struct Controller {
    pub(super) api: FakeClientset,
    pub(super) objects: Arc<FakeObjectManager>,
    pub(super) history: Arc<FakeHistory>,
    pub(super) clock: Arc<FakeClock>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) pods: PodHandler,
    pub(super) syncer: SetSyncer,
}

impl Controller {
    /// Creates a controller whose API stores these sets.
    pub(super) fn new(sets: &[&Builder<StatefulSet>]) -> Self {
        let api = FakeClientset::new();
        for set in sets {
            api.load(&STATEFUL_SETS, set.text());
        }
        let World {
            objects,
            history,
            control,
            now,
            ..
        } = World::new(FeatureGates::default());
        let clock = Arc::new(FakeClock::new(now));
        let consistency = Arc::new(NoopConsistencyStore);
        let syncer = SetSyncer::new(SyncerParts {
            caches: Caches {
                pods: Arc::clone(objects.pods.cache()),
                claims: Arc::clone(objects.claims.cache()),
                sets: Arc::clone(&objects.sets),
                revisions: Arc::clone(history.revisions.cache()),
            },
            reader: Arc::new(api.rest_client()),
            pod_control: Arc::new(RealPodControl::new(
                api.rest_client(),
                Arc::<NoopConsistencyStore>::clone(&consistency),
            )),
            set_control: Arc::new(control),
            consistency,
            clock: Arc::<FakeClock>::clone(&clock),
            metrics: Arc::new(NoopSetMetrics),
        });
        let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
        let pods = PodHandler {
            queue: queue.clone(),
            sets: Arc::clone(&objects.sets),
        };
        Self {
            api,
            objects,
            history,
            clock,
            queue,
            pods,
            syncer,
        }
    }

    /// Creates a controller whose cache and API store these sets.
    pub(super) fn with_cached(sets: &[&Builder<StatefulSet>]) -> Self {
        let controller = Self::new(sets);
        for set in sets {
            controller.objects.sets.add(set.build());
        }
        controller
    }

    /// Returns the cached set.
    pub(super) fn stored(&self, set: &StatefulSet) -> StatefulSet {
        let stored = self.objects.sets.get(set.namespace(), set.name());
        StatefulSet::clone(&stored.expect("the set is stored"))
    }

    /// Stores a set that another client changed in the cache.
    pub(super) fn store(&self, set: StatefulSet) {
        self.objects.sets.add(bumped(set));
    }

    /// Changes the stored set's number of replicas.
    pub(super) fn scale(&self, set: &StatefulSet, replicas: i32) -> StatefulSet {
        let mut set = self.stored(set);
        set.spec.replicas = replicas;
        self.store(set.clone());
        set
    }

    /// Returns the set's pod with this ordinal.
    pub(super) fn pod(&self, set: &StatefulSet, ordinal: usize) -> Arc<Pod> {
        let name = format!("{}-{ordinal}", set.name());
        let pod = self.objects.pods.cache().get(set.namespace(), &name);
        pod.expect("the pod exists")
    }

    /// Takes the key that the queue must hold.
    pub(super) async fn take(&self) -> String {
        let taken = tokio::time::timeout(PATIENCE, self.queue.get()).await;
        let key = taken.expect("a key is queued").expect("the queue is open");
        self.queue.done(&key);
        key.to_string()
    }

    /// Shuts the queue down, after which it must return no key.
    pub(super) async fn holds_no_key(&self) {
        self.queue.shut_down();
        assert_eq!(self.queue.get().await, None);
    }

    /// Syncs the key that the queue must hold. Like upstream's, it is no production worker: it
    /// doesn't retry a failed sync.
    ///
    /// Upstream: `fakeWorker`.
    pub(super) async fn work(&self) -> Result<SyncOutcome, Error> {
        let taken = tokio::time::timeout(PATIENCE, self.queue.get()).await;
        let key = taken.expect("a key is queued").expect("the queue is open");
        let synced = self.syncer.sync(&key).await;
        self.queue.done(&key);
        synced
    }

    /// Enqueues the set and syncs it.
    pub(super) async fn sync(&self, set: &StatefulSet) -> Result<SyncOutcome, Error> {
        self.queue.add(set.key());
        self.work().await
    }

    /// Syncs the set like a production worker, with all effects of the outcome.
    pub(super) async fn process(&self, set: &StatefulSet) {
        self.queue.add(set.key());
        let key = self.queue.get().await.expect("the queue is open");
        process_next_work_item(&self.queue, &self.syncer, &key).await;
        self.queue.done(&key);
    }

    /// Changes the pod with this ordinal, notifies the controller and syncs.
    async fn change_pod(&self, set: &StatefulSet, ordinal: usize, change: impl FnOnce(i32)) {
        let before = self.pod(set, ordinal);
        change(i32::try_from(ordinal).expect("an ordinal fits"));
        self.pods.on_update(&before, &self.pod(set, ordinal));
        self.work().await.unwrap();
    }

    /// Scales the set up: moves the last pod through pending and running to ready. Stops after
    /// `turns`.
    ///
    /// Upstream: `scaleUpStatefulSetControllerBounded`.
    pub(super) async fn scale_up(&self, set: &StatefulSet, turns: usize) {
        self.store(set.clone());
        self.sync(set).await.unwrap();
        for _ in 0..turns {
            let stored = self.stored(set);
            if stored.status.ready_replicas >= stored.spec.replicas {
                break;
            }
            let last = self.objects.pods_of(set).len() - 1;
            let ordinal = i32::try_from(last).expect("an ordinal fits");
            self.objects.set_pod_phase(set, ordinal, "Pending");
            self.pods.on_add(&self.pod(set, last), false);
            self.work().await.unwrap();
            self.change_pod(set, last, |at| {
                self.objects.set_pod_phase(set, at, "Running");
            })
            .await;
            let now = self.now();
            self.change_pod(set, last, |at| {
                self.objects.set_pod_ready(set, at, true, now);
            })
            .await;
            self.check(set);
        }
        self.check(set);
    }

    /// Scales down to the replicas of `set`: each pod that the controller deletes is shown as
    /// terminating, then as deleted.
    ///
    /// Upstream: `scaleDownStatefulSetController`.
    pub(super) async fn scale_down(&self, set: &StatefulSet) {
        let pods = self.objects.pods_of(set);
        let top = pods.last().expect("the set has pods");
        self.store(set.clone());
        self.sync(set).await.unwrap();
        self.terminate(set, top, pods.len() - 1).await;
        for _ in 0..TURNS_MAX {
            let stored = self.stored(set);
            if stored.status.replicas <= stored.spec.replicas {
                return self.check(set);
            }
            // The sync removed the pod, so the number of remaining pods is its ordinal.
            let next = self.objects.pods_of(set).len();
            self.terminate(set, top, next).await;
        }
        panic!(
            "the set doesn't scale down to {} replicas",
            set.spec.replicas
        );
    }

    /// Shows the controller a terminating pod, then its deletion.
    async fn terminate(&self, set: &StatefulSet, before: &Arc<Pod>, ordinal: usize) {
        let at = i32::try_from(ordinal).expect("an ordinal fits");
        self.objects.add_terminating_pod(set, at, self.now());
        let pod = self.pod(set, ordinal);
        self.pods.on_update(before, &pod);
        self.work().await.unwrap();
        self.objects
            .delete_pod(set, &pod, Timing::Queued)
            .await
            .unwrap();
        self.pods.on_delete(&pod, false);
        self.work().await.unwrap();
    }

    /// Returns the names of the patched pods.
    pub(super) fn patched(&self) -> Vec<String> {
        let actions = self.api.actions();
        let patches = actions.iter().filter(|action| action.verb == Verb::Patch);
        patches.map(|action| action.name.clone()).collect()
    }

    /// Returns a pod's owners in the API.
    pub(super) fn owners_of_pod(&self, name: &str) -> Vec<Value> {
        let pod = self.api.object(&PODS, upstream::NAMESPACE, name);
        let pod = pod.unwrap_or_else(|| panic!("pod {name} is missing"));
        let owners = pod["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    }

    /// Checks the invariants that hold after every step.
    fn check(&self, set: &StatefulSet) {
        let holds = invariants::monotonic(&self.stored(set), &self.objects);
        assert_eq!(holds, Ok(()));
    }

    pub(super) fn now(&self) -> Timestamp {
        use statefulset_client::clock::Clock as _;
        self.clock.now()
    }

    /// Returns the whole claim of the set's only template for an ordinal.
    pub(super) fn claim(&self, set: &StatefulSet, ordinal: usize) -> Value {
        let name = format!("datadir-{}-{ordinal}", set.name());
        let claim = self.objects.claims.json(set.namespace(), &name);
        claim.unwrap_or_else(|| panic!("claim {name} is missing"))
    }
}

/// Maximum of turns of a scale-down; more than any set here needs.
const TURNS_MAX: usize = 100;

/// A bound that no scale-up reaches.
pub(super) const UNBOUNDED: usize = 1_000;

/// Returns a set with the next resource version.
///
/// Upstream: `fakeResourceVersion`.
fn bumped(mut set: StatefulSet) -> StatefulSet {
    let metadata = Arc::make_mut(&mut set.metadata);
    let version: u64 = metadata.resource_version.parse().unwrap_or(0);
    metadata.resource_version = (version + 1).to_string().into();
    set
}

/// Returns a pod as the set creates it, for changes to its JSON.
///
/// Upstream: `newStatefulSetPod`.
pub(super) fn pod(set: &Builder<StatefulSet>, ordinal: i32) -> Builder<Pod> {
    Builder::from_json(stateful_set_pod(&set.build(), ordinal))
}

/// Returns the same pod one resource version later.
pub(super) fn later(pod: Builder<Pod>) -> Builder<Pod> {
    pod.with("metadata.resourceVersion", "1")
}

/// Adds a pod to the cache.
impl Controller {
    pub(super) fn cache_pod(&self, pod: &Builder<Pod>) {
        self.objects.pods.put(pod.json());
    }
}
