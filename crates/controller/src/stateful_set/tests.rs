//! Results of a sync, as a worker handles them.

use std::time::Duration;

use jiff::Timestamp;
use statefulset_client::cache::informer::EventHandler as _;
use statefulset_client::clock::FakeClock;
use statefulset_client::error::Error as ApiError;
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter};
use statefulset_controller_util::consistency::{
    Caches, ConsistencyStore, NoopConsistencyStore, RealConsistencyStore, TrackedResource,
};
use statefulset_controller_util::controller_ref_manager::MockSetReader;
use statefulset_controller_util::error::Aggregate;
use statefulset_controller_util::live_set_check::LiveSetError;
use statefulset_controller_util::pod_control::fake::FakePodControl;
use statefulset_controller_util::stateful_set::StatefulSetStatus;
use statefulset_controller_util::testing::{WriteLog, builders, upstream};
use statefulset_pod_control::Error as PodError;
use statefulset_set_control::{Error as UpdateError, MockStatefulSetControl, SyncOutcome, Waiting};
use tokio::time::advance;

use super::worker::CLAIM_WAIT_MAX;
use super::*;
use crate::metrics::NoopSetMetrics;

/// A queue and a syncer of the set `default/foo`, whose set control returns `outcome`.
struct Worker {
    queue: WorkQueue<ObjectKey>,
    syncer: SetSyncer,
    caches: Caches,
}

fn worker(
    outcome: impl Fn() -> SyncOutcome + Send + Sync + 'static,
    consistency: impl FnOnce(&Caches) -> Arc<dyn ConsistencyStore>,
) -> Worker {
    let caches = Caches::default();
    caches
        .sets
        .add(upstream::set(3).min_ready_seconds(9).build());
    let mut set_control = MockStatefulSetControl::new();
    set_control
        .expect_list_revisions()
        .returning(|_| Ok(Vec::new()));
    set_control
        .expect_update_stateful_set()
        .returning(move |_, _, _, _| outcome());
    let syncer = SetSyncer::new(SyncerParts {
        caches: caches.clone(),
        reader: Arc::new(MockSetReader::new()),
        pod_control: Arc::new(FakePodControl::default()),
        set_control: Arc::new(set_control),
        consistency: consistency(&caches),
        clock: Arc::new(FakeClock::new(Timestamp::UNIX_EPOCH)),
        metrics: Arc::new(NoopSetMetrics),
    });
    let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
    Worker {
        queue,
        syncer,
        caches,
    }
}

fn always_consistent(_: &Caches) -> Arc<dyn ConsistencyStore> {
    Arc::new(NoopConsistencyStore)
}

fn key() -> ObjectKey {
    upstream::set(3).build().key()
}

fn failure() -> SyncOutcome {
    UpdateError::Status(ApiError::api(500, "InternalError", "boom")).into()
}

impl Worker {
    /// Processes the key like a worker that has taken it.
    async fn work(&self) {
        self.queue.add(key());
        let key = self.queue.get().await.unwrap();
        process_next_work_item(&self.queue, &self.syncer, &key).await;
        self.queue.done(&key);
    }

    /// Checks that the key is queued again after exactly this delay.
    async fn waits_again_after(&self, milliseconds: u64) {
        let delay = Duration::from_millis(milliseconds);
        advance(delay.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(self.queue.len(), 0, "before {milliseconds} ms");
        advance(Duration::from_millis(1)).await;
        assert_eq!(self.queue.len(), 1, "after {milliseconds} ms");
        let key = self.queue.get().await.unwrap();
        self.queue.done(&key);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_sync_is_retried_with_doubled_delay() {
    let worker = worker(failure, always_consistent);
    for (failures, milliseconds) in [(1, 5), (2, 10), (3, 20)] {
        worker.work().await;
        assert_eq!(worker.queue.num_requeues(&key()), failures);
        worker.waits_again_after(milliseconds).await;
    }
}

#[tokio::test(start_paused = true)]
async fn successful_sync_resets_the_retry_delay() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let outcome = move || {
        if failing.load(std::sync::atomic::Ordering::Relaxed) {
            failure()
        } else {
            SyncOutcome::default()
        }
    };
    let worker = worker(outcome, always_consistent);
    worker.work().await;
    assert_eq!(worker.queue.num_requeues(&key()), 1);
    worker.waits_again_after(5).await;
    fails.store(false, std::sync::atomic::Ordering::Relaxed);
    worker.work().await;
    assert_eq!(worker.queue.num_requeues(&key()), 0);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(worker.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn set_is_requeued_when_its_pods_become_available() {
    let outcome = || {
        let mut outcome = SyncOutcome::default();
        outcome.status = Some(StatefulSetStatus {
            ready_replicas: 1,
            ..StatefulSetStatus::default()
        });
        outcome
    };
    let worker = worker(outcome, always_consistent);
    worker.work().await;
    assert_eq!(worker.queue.num_requeues(&key()), 0);
    worker.waits_again_after(9_000).await;
}

/// A store that waits for a pod's version that the cache does not show.
fn waiting_for_a_pod(caches: &Caches) -> Arc<dyn ConsistencyStore> {
    let store = RealConsistencyStore::new(Arc::new(caches.clone()));
    caches.pods.bookmark("9");
    store.wrote_at(&key(), "test", TrackedResource::Pods, "10");
    Arc::new(store)
}

#[tokio::test(start_paused = true)]
async fn stale_cache_retries_within_a_second() {
    let unsynced = || unreachable!("no sync decides on a stale cache");
    let worker = worker(unsynced, waiting_for_a_pod);
    for retries in 1..40 {
        worker.work().await;
        advance(Duration::from_secs(1)).await;
        assert_eq!(worker.queue.len(), 1, "after {retries} retries");
        let key = worker.queue.get().await.unwrap();
        worker.queue.done(&key);
    }
}

#[tokio::test(start_paused = true)]
async fn lagging_sets_delay_no_failed_one() {
    let unsynced = || unreachable!("no sync decides on a stale cache");
    let worker = worker(unsynced, waiting_for_a_pod);
    for _ in 0..1000 {
        worker.work().await;
        worker.queue.forget(&key());
    }
    let failed = ObjectKey::new("default", "failed");
    worker.queue.add_rate_limited(failed.clone());
    advance(Duration::from_millis(5)).await;
    let queued = [worker.queue.get().await, worker.queue.get().await];
    assert!(queued.contains(&Some(failed)), "{queued:?}");
}

fn waiting_for_a_claim() -> SyncOutcome {
    let (pod, claim) = ("foo-0".into(), "data-foo-0".into());
    Waiting::StaleClaim { pod, claim }.into()
}

fn failed_for_a_claim() -> SyncOutcome {
    let claim = PodError::ClaimBeingDeleted("data-foo-0".to_owned());
    UpdateError::from(claim).into()
}

#[tokio::test(start_paused = true)]
async fn removed_claim_wakes_the_set_that_waits_for_it() {
    for outcome in [waiting_for_a_claim, failed_for_a_claim] {
        let worker = worker(outcome, always_consistent);
        let handler = ClaimHandler {
            queue: worker.queue.clone(),
            waits: Arc::clone(worker.syncer.claim_waits()),
        };
        let claim = |name: &str, uid: &str| {
            let claim = builders::claim(&upstream::set(3).build(), "data", 0);
            let claim = claim.with("metadata.name", name).with("metadata.uid", uid);
            Arc::new(claim.with("metadata.namespace", "default").build())
        };
        worker.work().await;
        handler.on_delete(&claim("data-foo-1", "other"), false);
        handler.on_update(&claim("data-foo-0", "same"), &claim("data-foo-0", "same"));
        assert_eq!(worker.queue.len(), 0);
        handler.on_update(&claim("data-foo-0", "old"), &claim("data-foo-0", "new"));
        assert_eq!(worker.queue.len(), 1);
        let woken = worker.queue.get().await.unwrap();
        worker.queue.done(&woken);
        handler.on_delete(&claim("data-foo-0", "new"), false);
        assert_eq!(worker.queue.len(), 0, "the set has not waited again");
    }
}

#[tokio::test(start_paused = true)]
async fn set_that_waits_for_a_claim_asks_again_within_seconds() {
    for outcome in [waiting_for_a_claim, failed_for_a_claim] {
        let worker = worker(outcome, always_consistent);
        for _ in 0..30 {
            worker.work().await;
            advance(CLAIM_WAIT_MAX).await;
            assert_eq!(worker.queue.len(), 1);
            let key = worker.queue.get().await.unwrap();
            worker.queue.done(&key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_failures_next_to_a_claim_back_off_further() {
    let several = || {
        let claim = PodError::ClaimBeingDeleted("data-foo-0".to_owned());
        let other = PodError::DeletesClaims {
            action: "add an owner".to_owned(),
            source: Arc::new(LiveSetError::Deleted { key: key() }),
        };
        let errors = [claim, other].map(UpdateError::from);
        Aggregate::join::<UpdateError>(errors.into())
            .unwrap_err()
            .into()
    };
    let worker = worker(several, always_consistent);
    for _ in 0..12 {
        worker.work().await;
        let longest = CLAIM_WAIT_MAX * 10;
        advance(longest).await;
        let key = worker.queue.get().await.unwrap();
        worker.queue.done(&key);
    }
    worker.work().await;
    advance(CLAIM_WAIT_MAX * 2).await;
    assert_eq!(worker.queue.len(), 0);
    assert!(
        worker
            .syncer
            .claim_waits()
            .take(&ObjectKey::new("default", "data-foo-0"))
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn stale_cache_requeues_the_set_without_a_sync() {
    let unsynced = || unreachable!("no sync decides on a stale cache");
    let worker = worker(unsynced, waiting_for_a_pod);
    worker.work().await;
    assert_eq!(worker.queue.num_requeues(&key()), 1);
    worker.waits_again_after(5).await;
    assert_eq!(
        worker.caches.pods.last_sync_resource_version().as_ref(),
        "9"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_set_and_invalid_selector_are_not_retried() {
    let written = Arc::new(WriteLog::default());
    let store: Arc<dyn ConsistencyStore> = Arc::<WriteLog>::clone(&written);
    let gone = worker(failure, |_| store);
    gone.caches.sets.remove(upstream::NAMESPACE, "foo");
    let broken = worker(failure, always_consistent);
    let selector = serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let set = upstream::set(3).with("spec.selector", selector);
    broken.caches.sets.add(set.build());
    for worker in [gone, broken] {
        worker.work().await;
        assert_eq!(worker.queue.num_requeues(&key()), 0);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(worker.queue.len(), 0);
    }
    let forgotten = ["default/foo cleared"];
    assert_eq!(written.take(), forgotten, "only the deleted set is cleared");
}

#[tokio::test(start_paused = true)]
async fn worker_processes_keys_until_queue_shutdown() {
    let worker = worker(SyncOutcome::default, always_consistent);
    let syncer = Arc::new(worker.syncer);
    worker.queue.add(key());
    worker.queue.add(ObjectKey::new("default", "gone"));
    worker.queue.shut_down();
    super::worker(worker.queue.clone(), syncer, CancellationToken::new()).await;
    assert!(worker.queue.is_empty());
    assert_eq!(worker.queue.unfinished().total, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn shutdown_drops_queued_keys() {
    let worker = worker(
        || unreachable!("the controller is shutting down"),
        always_consistent,
    );
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    worker.queue.add(key());
    worker.queue.shut_down();
    super::worker(worker.queue.clone(), Arc::new(worker.syncer), cancelled).await;
    assert!(worker.queue.is_empty());
}
