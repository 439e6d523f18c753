//! Tests of the queue, under paused time.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::{advance, sleep};

use super::*;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics))
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn queue_is_first_in_first_out() {
    let queue = queue();
    for key in ["b", "a", "c", "a"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    for key in ["b", "a", "c"] {
        assert_eq!(queue.get().await, Some(key));
    }
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn key_in_progress_is_not_returned_again() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.get().await, Some("a"));
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.get().await, Some("b"));
    queue.done(&"a");
    assert_eq!(queue.get().await, Some("a"));
    queue.done(&"a");
    queue.done(&"b");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn add_wakes_waiting_worker() {
    let queue = queue();
    let start = Instant::now();
    let adder = async {
        sleep(millis(30)).await;
        queue.add("a");
    };
    let (key, ()) = tokio::join!(queue.get(), adder);
    assert_eq!(key, Some("a"));
    assert_eq!(start.elapsed(), millis(30));
}

#[tokio::test(start_paused = true)]
async fn delayed_key_is_returned_on_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", millis(50));
    assert!(queue.is_empty());
    assert_eq!(queue.get().await, Some("a"));
    assert_eq!(start.elapsed(), millis(50));
}

#[tokio::test(start_paused = true)]
async fn earliest_delay_wins_once() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", millis(50));
    queue.add_after("a", millis(20));
    queue.add_after("a", millis(70));
    assert_eq!(queue.get().await, Some("a"));
    assert_eq!(start.elapsed(), millis(20));
    queue.done(&"a");
    advance(millis(500)).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn shorter_delay_wakes_waiting_worker() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("late", millis(500));
    let adder = async {
        sleep(millis(10)).await;
        queue.add_after("early", millis(10));
    };
    let (key, ()) = tokio::join!(queue.get(), adder);
    assert_eq!(key, Some("early"));
    assert_eq!(start.elapsed(), millis(20));
}

#[tokio::test(start_paused = true)]
async fn immediate_add_keeps_delayed_add() {
    let queue = queue();
    queue.add_after("a", millis(50));
    queue.add("a");
    assert_eq!(queue.get().await, Some("a"));
    queue.done(&"a");
    let start = Instant::now();
    assert_eq!(queue.get().await, Some("a"));
    assert_eq!(start.elapsed(), millis(50));
}

#[tokio::test(start_paused = true)]
async fn delayed_key_keeps_its_order_without_waiting_worker() {
    let queue = queue();
    queue.add_after("delayed", millis(10));
    advance(millis(20)).await;
    queue.add("added later");
    assert_eq!(queue.get().await, Some("delayed"));
    assert_eq!(queue.get().await, Some("added later"));
}

#[tokio::test(start_paused = true)]
async fn failure_delays_grow_until_forgotten() {
    let queue = queue();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        queue.add_rate_limited("a");
        queue.get().await;
        queue.done(&"a");
        waits.push(start.elapsed().as_millis());
    }
    assert_eq!(waits, [5, 10, 20, 40]);
    assert_eq!(queue.num_requeues(&"a"), 4);
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn shut_down_queue_drains_and_ignores_adds() {
    let queue = queue();
    queue.add("working");
    assert_eq!(queue.get().await, Some("working"));
    queue.add("working");
    queue.add("waiting");
    queue.add_after("delayed", millis(10));
    queue.shut_down();
    assert!(queue.shutting_down());
    queue.add("late");
    queue.add_after("late", Duration::ZERO);
    queue.add_rate_limited("late");
    assert_eq!(queue.get().await, Some("waiting"));
    queue.done(&"working");
    assert_eq!(queue.get().await, Some("working"));
    assert_eq!(queue.get().await, None);
    advance(millis(50)).await;
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn shutdown_wakes_every_waiting_worker() {
    let queue = queue();
    let stopper = async {
        sleep(millis(1)).await;
        queue.shut_down();
    };
    let (first, second, ()) = tokio::join!(queue.get(), queue.get(), stopper);
    assert_eq!((first, second), (None, None));
}

#[tokio::test(start_paused = true)]
async fn cancelled_get_loses_no_key() {
    let queue = queue();
    assert!(
        timeout_at(Instant::now() + millis(5), queue.get())
            .await
            .is_err()
    );
    queue.add("a");
    assert_eq!(queue.get().await, Some("a"));
}

#[derive(Default)]
struct Counts {
    added: AtomicUsize,
    got: AtomicUsize,
    done: AtomicUsize,
    retried: AtomicUsize,
}

impl QueueMetrics for Counts {
    fn added(&self) {
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    fn got(&self, waited: Duration) {
        assert_eq!(waited, millis(7));
        self.got.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self, worked: Duration) {
        assert_eq!(worked, millis(3));
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn adds_are_counted_when_key_becomes_dirty() {
    let counts = Arc::new(Counts::default());
    let metrics: Arc<dyn QueueMetrics> = Arc::<Counts>::clone(&counts);
    let queue = WorkQueue::new(RateLimiter::default(), metrics);
    queue.add("a");
    queue.add("a");
    advance(millis(7)).await;
    queue.get().await;
    queue.add("a");
    advance(millis(3)).await;
    assert_eq!(
        queue.unfinished(),
        Unfinished {
            total: millis(3),
            longest: millis(3)
        }
    );
    queue.done(&"a");
    queue.add_after("a", Duration::ZERO);
    queue.add_after("b", millis(100));
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    assert_eq!(count(&counts.added), 2);
    assert_eq!(count(&counts.got), 1);
    assert_eq!(count(&counts.done), 1);
    assert_eq!(count(&counts.retried), 2);
}

/// Records the reports of unfinished keys; requests two per second.
#[derive(Default)]
struct Reports(Mutex<Vec<Unfinished>>);

impl QueueMetrics for Reports {
    fn refresh_period(&self) -> Option<Duration> {
        Some(millis(500))
    }

    fn unfinished(&self, unfinished: Unfinished) {
        self.0.lock().unwrap().push(unfinished);
    }
}

#[tokio::test(start_paused = true)]
async fn unfinished_keys_are_reported_until_the_queue_ends() {
    let reports = Arc::new(Reports::default());
    let metrics: Arc<dyn QueueMetrics> = Arc::<Reports>::clone(&reports);
    let queue = WorkQueue::new(RateLimiter::default(), metrics);
    queue.add("a");
    queue.add("b");
    queue.get().await;
    let work = async {
        sleep(millis(200)).await;
        queue.get().await;
        sleep(millis(500)).await;
        queue.done(&"a");
        sleep(millis(400)).await;
        queue.shut_down();
    };
    tokio::join!(queue.report_unfinished(), work);
    let recorded = reports.0.lock().unwrap();
    let millis: Vec<_> = recorded
        .iter()
        .map(|now| (now.total.as_millis(), now.longest.as_millis()))
        .collect();
    assert_eq!(millis, [(0, 0), (800, 500), (800, 800)]);
}

/// Counts queued keys; requests two reports per second.
#[derive(Default)]
struct Depth(AtomicUsize);

impl QueueMetrics for Depth {
    fn added(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn got(&self, _: Duration) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn refresh_period(&self) -> Option<Duration> {
        Some(millis(500))
    }
}

#[tokio::test(start_paused = true)]
async fn due_keys_are_counted_while_workers_are_busy() {
    let depth = Arc::new(Depth::default());
    let metrics: Arc<dyn QueueMetrics> = Arc::<Depth>::clone(&depth);
    let queue = WorkQueue::new(RateLimiter::default(), metrics);
    queue.add("a");
    queue.get().await;
    queue.add_after("b", millis(700));
    queue.add_after("c", millis(1200));
    let watch = async {
        let mut depths = Vec::new();
        for _ in 0..3 {
            sleep(millis(600)).await;
            depths.push(depth.0.load(Ordering::Relaxed));
        }
        depths
    };
    tokio::select! {
        () = queue.report_unfinished() => panic!("the queue has not shut down"),
        // At 0.6 s, 1.2 s and 1.8 s.
        depths = watch => assert_eq!(depths, [0, 1, 2]),
    }
}

#[tokio::test]
async fn metrics_without_refresh_period_get_no_reports() {
    queue().report_unfinished().await;
}

/// Random workers and adders: no key is with two workers, and after its last add each key is
/// returned once more.
#[tokio::test(start_paused = true)]
async fn no_add_is_lost_and_no_key_has_two_workers() {
    for seed in 0..50 {
        let queue: WorkQueue<u8> =
            WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
        let in_work = Mutex::new([false; 4]);
        let wanted = Mutex::new([false; 4]);
        let worker = async |seed: u64| {
            let mut rng = StdRng::seed_from_u64(seed);
            while let Some(key) = queue.get().await {
                assert!(!std::mem::replace(
                    &mut in_work.lock().unwrap()[usize::from(key)],
                    true
                ));
                wanted.lock().unwrap()[usize::from(key)] = false;
                sleep(millis(rng.random_range(0..20))).await;
                in_work.lock().unwrap()[usize::from(key)] = false;
                queue.done(&key);
            }
        };
        let adder = async {
            let mut rng = StdRng::seed_from_u64(seed);
            for _ in 0..200 {
                let key: u8 = rng.random_range(0..4);
                wanted.lock().unwrap()[usize::from(key)] = true;
                match rng.random_range(0..3) {
                    0 => queue.add_after(key, millis(rng.random_range(0..15))),
                    1 => queue.add_rate_limited(key),
                    _ => queue.add(key),
                }
                queue.forget(&key);
                sleep(millis(rng.random_range(0..10))).await;
            }
            // Longer than any delay and any processing time.
            sleep(Duration::from_secs(60)).await;
            assert_eq!(*wanted.lock().unwrap(), [false; 4], "seed {seed}");
            queue.shut_down();
        };
        tokio::join!(adder, worker(seed + 1), worker(seed + 2), worker(seed + 3));
    }
}
