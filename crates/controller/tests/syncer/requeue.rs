//! When a set is to be synced again although no event may tell.

use std::sync::Arc;
use std::time::Duration;

use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSetStatus;
use statefulset_set_control::SyncOutcome;

use crate::fixture::{Fixture, at, owned};

/// When the syncs of these tests begin.
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

/// One sync, of which the core takes some time.
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
        SyncOutcome {
            status: status.clone(),
            ..SyncOutcome::default()
        }
    };
    fixture.sync(outcome).await.unwrap().requeue_after
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_set_is_not_looked_at_again_without_a_reason() {
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
async fn it_is_when_the_next_pod_becomes_available() {
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
async fn the_time_that_the_sync_took_counts() {
    let slow = |core_takes| Case {
        core_takes,
        ..Case::default()
    };
    assert_eq!(requeue_after(slow(2)).await, Some(seconds(5)));
    assert_eq!(requeue_after(slow(7)).await, Some(seconds(0)));
    // Which pod is next still goes by the beginning of the sync.
    assert_eq!(requeue_after(slow(20)).await, Some(seconds(0)));
}

#[tokio::test]
async fn without_such_a_pod_it_is_after_the_whole_time() {
    // Exactly now isn't later than now.
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
async fn a_pod_on_its_way_out_counts() {
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
async fn more_available_than_ready_pods_is_a_difference_too() {
    let case = Case {
        status: Some(status(1, 2)),
        ..Case::default()
    };
    assert_eq!(requeue_after(case).await, Some(seconds(7)));
}
