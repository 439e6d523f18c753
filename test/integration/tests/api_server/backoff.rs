//! Tests of the request rate against a failing server.

use std::time::Duration;

use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::faults::{FaultAction, FaultError, RequestMatcher, WatchAction};
use kube_test_control_plane::route::Verb;
use tokio::time::sleep;

use crate::harness::{Fixture, assert_begin};

/// Times between consecutive requests.
fn delays(requests: &[AuditEntry]) -> Vec<Duration> {
    let delay = |pair: &[AuditEntry]| pair[1].received.duration_since(pair[0].received);
    let delays = requests.windows(2).map(|pair| delay(pair).unsigned_abs());
    delays.collect()
}

#[tokio::test(start_paused = true)]
async fn failing_list_backs_off_exponentially_to_a_minute() {
    let fixture = Fixture::start().await;
    sleep(Duration::from_secs(5)).await;
    let pods = || RequestMatcher::any().resource("pods");
    let broken = FaultAction::respond(FaultError::ServiceUnavailable);
    let id = fixture.faults().inject_always(pods(), broken);
    let mark = fixture.plane.server().clock().now();
    fixture
        .faults()
        .apply_to_open_watches(pods(), WatchAction::Cut);
    sleep(Duration::from_secs(600)).await;
    fixture.faults().remove(id);
    let audit = fixture.plane.server().audit();
    let lists = audit.matching(|entry| {
        entry.resource == "pods"
            && matches!(entry.verb, Verb::List | Verb::Watch)
            && entry.received >= mark
            && entry.user.ends_with(":statefulset-controller")
    });
    let delays = delays(&lists);
    // After the first delay, of at least 800 ms, the interrupted watch is reopened.
    let bases = [1600, 3200, 6400, 12_800, 25_600].map(Duration::from_millis);
    let longest = Duration::from_secs(30);
    let mut expected = bases.into_iter().chain(std::iter::repeat(longest));
    assert!((12..=24).contains(&delays.len()), "{delays:?}");
    for delay in &delays {
        let base = expected.next().unwrap();
        assert!(
            *delay >= base && *delay <= base * 2,
            "{delay:?} in {delays:?}"
        );
    }
}

/// Rejects every pod creation for an hour; returns the times of the attempts.
async fn tries_to_create_a_pod(refusal: FaultError) -> Vec<Duration> {
    let fixture = Fixture::start().await;
    sleep(Duration::from_secs(5)).await;
    fixture.take_lines();
    let creations = || RequestMatcher::any().verb(Verb::Create).resource("pods");
    let refused = FaultAction::respond(refusal);
    let id = fixture.faults().inject_always(creations(), refused);
    let mark = fixture.plane.server().audit().mark();
    fixture.create(2).await;
    sleep(Duration::from_secs(3600)).await;
    let audit = fixture.plane.server().audit();
    let tries = audit.writes_since(mark, &creations()).unwrap();
    fixture.faults().remove(id);
    fixture.complete(2).await;
    let begin = [
        "ERROR error syncing StatefulSet, requeuing error=",
        "INFO set can be synced again after=",
    ];
    assert_begin(&fixture.take_lines(), &begin);
    assert_eq!(fixture.pod_writes(Verb::Create), ["web-0", "web-1"]);
    fixture.plane.invariants().expect_none();
    delays(&tries)
}

/// Maximum delay of the queue.
const QUEUE_DELAY_MAX: Duration = Duration::from_secs(1000);

#[tokio::test(start_paused = true)]
async fn rejected_write_backs_off_exponentially() {
    let delays = tries_to_create_a_pod(FaultError::Status {
        code: 429,
        reason: "TooManyRequests".to_owned(),
        message: "fault of the test".to_owned(),
        details: None,
    })
    .await;
    // The first status write is a change, which triggers an immediate sync.
    let doubled = &delays[2..];
    assert_eq!(doubled[0], Duration::from_millis(20), "{delays:?}");
    for pair in doubled.windows(2) {
        assert_eq!(pair[1], QUEUE_DELAY_MAX.min(pair[0] * 2), "{delays:?}");
    }
    assert_eq!(doubled.last(), Some(&QUEUE_DELAY_MAX));
}

#[tokio::test(start_paused = true)]
async fn throttled_write_is_sent_eleven_times_before_requeue() {
    let wait = Duration::from_secs(7);
    let delays = tries_to_create_a_pod(FaultError::TooManyRequests {
        retry_after_seconds: 7,
    })
    .await;
    let between: Vec<Duration> = delays
        .chunks(11)
        .filter_map(|try_| try_.get(10))
        .copied()
        .collect();
    for try_ in delays.chunks(11) {
        assert_eq!(try_[..10], [wait; 10], "{delays:?}");
    }
    // Remaining queue delay after an attempt of more than a minute.
    assert!(between.len() < 24, "{between:?}");
    assert!(between.is_sorted(), "{between:?}");
    assert_eq!(between.last(), Some(&QUEUE_DELAY_MAX), "{between:?}");
}
