//! Delayed requeues of a set without an event.

use std::sync::Arc;
use std::time::Duration;

use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSetStatus;
use statefulset_set_control::SyncOutcome;

use crate::fixture::{Fixture, at, owned};

/// Start time of the syncs.
const NOW: i64 = 1000;

pub(crate) fn status(ready: i32, available: i32) -> StatefulSetStatus {
    StatefulSetStatus {
        ready_replicas: ready,
        available_replicas: available,
        ..StatefulSetStatus::default()
    }
}

/// A pod whose Ready condition changed this many seconds before the sync.
fn ready_for(name: &str, seconds: i64) -> Pod {
    let mut pod = owned(name);
    pod.readiness.ready = true;
    pod.readiness.last_transition_time = Some(at(NOW - seconds));
    pod
}

/// One sync whose set control takes some time.
struct Case {
    min_ready_seconds: i32,
    status: Option<StatefulSetStatus>,
    pods: Vec<Pod>,
    core_takes: u64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            min_ready_seconds: 10,
            status: Some(status(2, 1)),
            pods: vec![ready_for("web-0", 60), ready_for("web-1", 3)],
            core_takes: 0,
        }
    }
}

async fn requeue_after(case: Case) -> Option<Duration> {
    let fixture = Fixture::default();
    fixture.clock.set(at(NOW));
    fixture.add_set(|set| set["spec"]["minReadySeconds"] = case.min_ready_seconds.into());
    for pod in case.pods {
        fixture.add_pod(pod);
    }
    let (clock, status) = (Arc::clone(&fixture.clock), case.status);
    let outcome = move || {
        clock.advance(Duration::from_secs(case.core_takes));
        let mut outcome = SyncOutcome::default();
        outcome.status.clone_from(&status);
        outcome
    };
    fixture.sync(outcome).await.unwrap().requeue_after
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn set_is_not_requeued_without_a_reason() {
    let unset = Case {
        min_ready_seconds: 0,
        ..Case::default()
    };
    assert_eq!(requeue_after(unset).await, None);
    let all_available = Case {
        status: Some(status(2, 2)),
        ..Case::default()
    };
    assert_eq!(requeue_after(all_available).await, None);
    let unknown = Case {
        status: None,
        ..Case::default()
    };
    assert_eq!(requeue_after(unknown).await, None);
}

#[tokio::test]
async fn set_is_requeued_when_the_next_pod_becomes_available() {
    assert_eq!(requeue_after(Case::default()).await, Some(seconds(7)));
    let pods = vec![
        ready_for("web-0", 2),
        ready_for("web-1", 9),
        ready_for("web-2", 4),
    ];
    let earliest = Case {
        pods,
        ..Case::default()
    };
    assert_eq!(requeue_after(earliest).await, Some(seconds(1)));
}

#[tokio::test]
async fn requeue_delay_subtracts_the_syncs_duration() {
    let slow = |core_takes| Case {
        core_takes,
        ..Case::default()
    };
    assert_eq!(requeue_after(slow(2)).await, Some(seconds(5)));
    assert_eq!(requeue_after(slow(7)).await, Some(seconds(0)));
    // The start of the sync still decides which pod is next.
    assert_eq!(requeue_after(slow(20)).await, Some(seconds(0)));
}

#[tokio::test]
async fn set_without_pending_pod_waits_min_ready_seconds() {
    // A pod that becomes available at the sync's start is not later.
    for pods in [
        vec![],
        vec![ready_for("web-0", 60)],
        vec![ready_for("web-0", 10)],
    ] {
        assert_eq!(
            requeue_after(Case {
                pods,
                ..Case::default()
            })
            .await,
            Some(seconds(10))
        );
    }
    let mut unknown = ready_for("web-0", 3);
    unknown.readiness.last_transition_time = None;
    let mut unready = ready_for("web-1", 3);
    unready.readiness.ready = false;
    let pods = vec![unknown, unready];
    let case = Case {
        pods,
        core_takes: 4,
        ..Case::default()
    };
    assert_eq!(requeue_after(case).await, Some(seconds(10)));
}

#[tokio::test]
async fn terminating_pod_counts_for_the_requeue() {
    let pod = Pod {
        deletion_timestamp: Some(at(NOW)),
        ..ready_for("web-0", 4)
    };
    let case = Case {
        pods: vec![pod],
        ..Case::default()
    };
    assert_eq!(requeue_after(case).await, Some(seconds(6)));
}

#[tokio::test]
async fn more_available_than_ready_pods_requeue_the_set() {
    let case = Case {
        status: Some(status(1, 2)),
        ..Case::default()
    };
    assert_eq!(requeue_after(case).await, Some(seconds(7)));
}
