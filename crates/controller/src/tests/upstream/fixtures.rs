//! A controller with a fake API over a world of in-memory objects, and drivers for its queue.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use kube_apimachinery::object_key::ObjectKey;
use serde_json::Value;
use statefulset_client::cache::informer::EventHandler as _;
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::{FakeClientset, Verb};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{PODS, STATEFUL_SETS};
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter, WorkQueue};
use statefulset_controller_util::consistency::NoopConsistencyStore;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::pod_control::RealPodControl;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream;
use statefulset_set_control::testing::{World, invariants, stateful_set_pod};

use crate::SyncOutcome;
use crate::error::Error;
use crate::metrics::NoopSetMetrics;
use crate::stateful_set::{PodHandler, SetSyncer, SyncerParts, process_next_work_item};

/// Timeout of a worker that waits for an expected key.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of turns of a scale-down; more than any set here needs.
const TURNS_MAX: usize = 100;
/// A bound that no scale-up reaches.
pub(super) const UNBOUNDED: usize = 1_000;

/// The controller's dependencies, with the world's caches and without informers. Syncs go through
/// the queue.
///
/// Pods are adopted and released through the API, not the fakes, and the live set is read there.
///
/// Upstream: `newFakeStatefulSetController`.
pub(super) struct Controller {
    world: World,
    pub(super) api: FakeClientset,
    pub(super) clock: Arc<FakeClock>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) pod_events: PodHandler,
    pub(super) syncer: SetSyncer,
}

impl Deref for Controller {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Controller {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Controller {
    /// Creates a controller whose cache and API store these sets; the first is the world's.
    pub(super) fn new(sets: &[&Builder<StatefulSet>]) -> Self {
        let controller = Self::uncached(sets);
        for set in sets {
            controller.objects.sets.add(set.build());
        }
        controller
    }

    /// Creates a controller whose API stores these sets.
    pub(super) fn uncached(sets: &[&Builder<StatefulSet>]) -> Self {
        let api = FakeClientset::new();
        for set in sets {
            api.load(&STATEFUL_SETS, set.text());
        }
        let set = sets
            .first()
            .map_or_else(|| upstream::set(0).build(), |set| set.build());
        let world = World::without_set(set, FeatureGates::default());
        let clock = Arc::new(FakeClock::new(world.now));
        let consistency = Arc::new(NoopConsistencyStore);
        let syncer = SetSyncer::new(SyncerParts {
            caches: world.caches(),
            reader: Arc::new(api.rest_client()),
            pod_control: Arc::new(RealPodControl::new(
                api.rest_client(),
                Arc::<NoopConsistencyStore>::clone(&consistency),
            )),
            set_control: Arc::clone(&world.control) as _,
            consistency,
            clock: Arc::<FakeClock>::clone(&clock),
            metrics: Arc::new(NoopSetMetrics),
        });
        let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
        let pod_events = PodHandler {
            queue: queue.clone(),
            sets: Arc::clone(&world.objects.sets),
        };
        Self {
            world,
            api,
            clock,
            queue,
            pod_events,
            syncer,
        }
    }

    /// Takes the key that the queue must hold.
    pub(super) async fn take(&self) -> String {
        let key = self.next().await;
        self.queue.done(&key);
        key.to_string()
    }

    async fn next(&self) -> ObjectKey {
        let taken = tokio::time::timeout(PATIENCE, self.queue.get()).await;
        taken.expect("a key is queued").expect("the queue is open")
    }

    /// Shuts the queue down, after which it must return no key.
    pub(super) async fn holds_no_key(&self) {
        self.queue.shut_down();
        assert_eq!(self.queue.get().await, None);
    }

    /// Syncs the key that the queue must hold. Like upstream's, it is not a production worker:
    /// it doesn't retry a failed sync.
    ///
    /// Upstream: `fakeWorker`.
    pub(super) async fn work(&mut self) -> Result<SyncOutcome, Error> {
        let key = self.next().await;
        let synced = self.syncer.sync(&key).await;
        self.queue.done(&key);
        self.reread();
        synced
    }

    /// Enqueues the world's set and syncs it.
    pub(super) async fn sync(&mut self) -> Result<SyncOutcome, Error> {
        self.queue.add(self.set.key());
        self.work().await
    }

    /// Syncs the world's set like a production worker, with all effects of the outcome.
    pub(super) async fn process(&mut self) {
        self.queue.add(self.set.key());
        let key = self.next().await;
        process_next_work_item(&self.queue, &self.syncer, &key).await;
        self.queue.done(&key);
        self.reread();
    }

    /// Notifies the controller of a pod's change and syncs.
    async fn notify(&mut self, before: &Arc<Pod>) {
        self.pod_events.on_update(before, &self.pod(before));
        self.work().await.unwrap();
    }

    /// Scales the set up: moves the last pod through pending and running to ready. Stops after
    /// `turns`.
    ///
    /// Upstream: `scaleUpStatefulSetControllerBounded`.
    pub(super) async fn scale_up(&mut self, turns: usize) {
        self.store();
        self.sync().await.unwrap();
        for _ in 0..turns {
            if self.set.status.ready_replicas >= self.set.spec.replicas {
                break;
            }
            let new = self.pods().pop().expect("the set has pods");
            self.set_phase(&new, "Pending");
            let pending = self.pod(&new);
            self.pod_events.on_add(&pending, false);
            self.work().await.unwrap();
            self.set_phase(&new, "Running");
            self.notify(&pending).await;
            let running = self.pod(&new);
            self.set_ready(&new, true);
            self.notify(&running).await;
            self.check(invariants::monotonic).unwrap();
        }
        self.check(invariants::monotonic).unwrap();
    }

    /// Scales down to the set's replicas: each pod that the controller deletes is shown as
    /// terminating, then as deleted.
    ///
    /// Upstream: `scaleDownStatefulSetController`.
    pub(super) async fn scale_down(&mut self) {
        let before = self.pods().pop().expect("the set has pods");
        self.sync().await.unwrap();
        for _ in 0..TURNS_MAX {
            // The sync removed the pod, so the number of remaining pods is its ordinal.
            let next = i32::try_from(self.pods().len()).expect("an ordinal fits");
            let pod = self.add_terminating_pod(next);
            self.pod_events.on_update(&before, &pod);
            self.work().await.unwrap();
            self.remove_pod(&pod);
            self.pod_events.on_delete(&pod, false);
            self.work().await.unwrap();
            if self.set.status.replicas <= self.set.spec.replicas {
                return self.check(invariants::monotonic).unwrap();
            }
        }
        let replicas = self.set.spec.replicas;
        panic!("the set doesn't scale down to {replicas} replicas");
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
}

/// Returns a pod as the set creates it, for changes to its JSON.
pub(super) fn pod(set: &Builder<StatefulSet>, ordinal: i32) -> Builder<Pod> {
    stateful_set_pod(&set.build(), ordinal)
}

/// Returns the same pod one resource version later.
pub(super) fn later(pod: Builder<Pod>) -> Builder<Pod> {
    pod.with("metadata.resourceVersion", "1")
}
