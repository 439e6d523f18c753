//! Scaling of sets by the controller, one event at a time.

use std::time::Duration;

use serde_json::Value;
use statefulset_client::resource::PODS;
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::{builders, upstream};

use super::fixtures::{Controller, UNBOUNDED, pod};

/// A set of three ready pods.
async fn up() -> Controller {
    let mut controller = Controller::uncached(&[&upstream::set(3)]);
    controller.scale_up(UNBOUNDED).await;
    assert_eq!(controller.set.status.replicas, 3);
    controller
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_creates() {
    let controller = up().await;
    assert_eq!(controller.set.status.ready_replicas, 3);
    assert_eq!(controller.requests(Call::CreatePod), 3);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_deletes() {
    let mut controller = up().await;
    controller.scale(0);
    controller.scale_down().await;
    assert_eq!(controller.set.status.replicas, 0);
    assert!(controller.pods().is_empty());
    assert_eq!(controller.requests(Call::DeletePod), 3);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_respects_termination() {
    let mut controller = up().await;
    controller.add_terminating_pod(3);
    controller.add_terminating_pod(4);
    controller.sync().await.unwrap();
    assert_eq!(controller.pods().len(), 5);
    assert_eq!(controller.requests(Call::DeletePod), 0);
    controller.remove_pod(3);
    controller.remove_pod(4);
    controller.scale(0);
    controller.scale_down().await;
    assert_eq!(controller.set.status.replicas, 0);
}

/// Scales a set from three to five pods while its lowest pod terminates; returns the number of
/// creations after the first sync.
async fn scale_past(terminate: impl FnOnce(&Controller)) -> usize {
    let mut controller = up().await;
    controller.scale(5);
    terminate(&controller);
    controller.sync().await.unwrap();
    assert_eq!(controller.pods().len(), 3);
    let created = controller.requests(Call::CreatePod);

    controller.remove_pod(0);
    controller.sync().await.unwrap();
    assert_eq!(controller.pod_names(), ["foo-0", "foo-1", "foo-2"]);
    assert!(!controller.pod(0).is_terminating());
    assert_eq!(controller.requests(Call::CreatePod), created + 1);
    created
}

mod test_stateful_set_controller_blocks_scaling {
    use super::*;

    /// Upstream's terminating pod has no phase, so it is replaced immediately, which blocks
    /// nothing.
    #[tokio::test(start_paused = true)]
    async fn as_upstream() {
        let created = scale_past(|controller| drop(controller.set_terminated(0))).await;
        assert_eq!(created, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn terminating_pod_delays_the_scale_up() {
        let created = scale_past(|controller| drop(controller.add_terminating_pod(0))).await;
        assert_eq!(created, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_deletion_timestamp() {
    let mut controller = Controller::new(&[&upstream::set(3).terminating()]);
    let synced = controller.sync().await.unwrap();
    // The sync completed without changes.
    assert!(synced.status.is_some());
    assert!(controller.pods().is_empty());
    assert_eq!(controller.requests(Call::CreatePod), 0);
    assert_eq!(controller.requests(Call::DeletePod), 0);
    assert_eq!(controller.patched(), Vec::<String>::new());
}

/// A controller whose cache misses the set's deletion, and an orphan pod that the set selects.
fn with_deletion_unseen() -> Controller {
    let set = upstream::set(3);
    let mut controller = Controller::uncached(&[&set.clone().terminating()]);
    controller.apply(&set);
    let orphan = pod(&set, 1).uid("foo-1-uid").orphan();
    controller.api.load(&PODS, orphan.text());
    controller.put_pod(&orphan);
    controller
}

/// Checks that no set adopted the pod, in the cache or in the API, and that no pod was created.
fn assert_pod_left_alone(controller: &Controller) {
    let pods = controller.pods();
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].controller, None);
    assert_eq!(controller.requests(Call::CreatePod), 0);
    assert_eq!(controller.patched(), Vec::<String>::new());
    assert_eq!(controller.owners_of_pod("foo-1"), Vec::<Value>::new());
}

mod test_stateful_set_controller_deletion_timestamp_race {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn as_upstream() {
        let mut controller = with_deletion_unseen();
        let revision = builders::revision(&controller.set, "foo-1", 1, "{}");
        controller.put_revision(&revision.orphan().label("foo", "bar"));

        let error = controller.sync().await.unwrap_err().to_string();
        let refused = "can't adopt ControllerRevisions: default/foo has just been deleted at ";
        assert!(error.starts_with(refused), "{error}");
        assert_pod_left_alone(&controller);
        let revisions = controller.revisions();
        assert_eq!(revisions.len(), 1);
        assert_eq!(revisions[0].controller, None);
    }

    /// With an orphaned revision, the sync doesn't reach the pods.
    #[tokio::test(start_paused = true)]
    async fn unseen_deletion_of_the_set_prevents_pod_adoption() {
        let mut controller = with_deletion_unseen();
        let error = controller.sync().await.unwrap_err().to_string();
        let refused =
            "can't adopt Pod default/foo-1 (foo-1-uid): default/foo has just been deleted at ";
        assert!(error.starts_with(refused), "{error}");
        assert_pod_left_alone(&controller);
    }
}

/// The status and the next check use the same time; no event reports when a pod becomes available.
#[tokio::test(start_paused = true)]
async fn test_stateful_set_availability_check() {
    let set = upstream::set(4).min_ready_seconds(5).parallel();
    let mut controller = Controller::new(&[&set]);
    let noon = controller.now;
    controller.clock.advance(Duration::from_millis(300));
    let ready_since = [None, Some(0), Some(2), Some(4)];
    for (ordinal, seconds) in (0..).zip(ready_since) {
        controller.put_pod(&pod(&set, ordinal).phase("Running"));
        if let Some(seconds) = seconds {
            let since = noon - jiff::SignedDuration::from_secs(seconds);
            controller.set_ready_since(ordinal, since);
        }
    }
    controller.process().await;
    let status = &controller.set.status;
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 0));

    // The pod that has been ready for 4.3 seconds is available in 0.7.
    assert_eq!(controller.queue.len(), 0);
    tokio::time::advance(Duration::from_millis(699)).await;
    assert_eq!(controller.queue.len(), 0);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(controller.queue.len(), 1);
}
