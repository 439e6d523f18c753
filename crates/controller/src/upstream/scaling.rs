//! Scaling of sets by the controller, one event at a time.

use jiff::Timestamp;
use serde_json::{Value, json};
use statefulset_client::resource::PODS;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream;
use statefulset_pod_control::fake::FakeObjectManager;
use statefulset_pod_control::{ObjectManager as _, Timing};

use super::fixtures::{Controller, UNBOUNDED, pod};

/// A set of three ready pods.
async fn up(set: &Builder<StatefulSet>) -> (Controller, StatefulSet) {
    let controller = Controller::new(&[set]);
    controller.scale_up(&set.build(), UNBOUNDED).await;
    let stored = controller.stored(&set.build());
    assert_eq!(stored.status.replicas, 3);
    (controller, stored)
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_creates() {
    let (controller, set) = up(&upstream::set(3)).await;
    assert_eq!(set.status.ready_replicas, 3);
    assert_eq!(controller.objects.create_pod_tracker.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_deletes() {
    let (controller, set) = up(&upstream::set(3)).await;
    let set = controller.scale(&set, 0);
    controller.scale_down(&set).await;
    assert_eq!(controller.stored(&set).status.replicas, 0);
    assert_eq!(controller.objects.pods_of(&set).len(), 0);
    // The controller deletes each pod when it is running and again when it is terminating.
    assert_eq!(controller.objects.delete_pod_tracker.requests(), 3 + 3);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_respects_termination() {
    let (controller, set) = up(&upstream::set(3)).await;
    let now = controller.now();
    controller.objects.add_terminating_pod(&set, 3, now);
    controller.objects.add_terminating_pod(&set, 4, now);
    controller.sync(&set).await.unwrap();
    let pods = controller.objects.pods_of(&set);
    assert_eq!(pods.len(), 5);
    assert_eq!(controller.objects.delete_pod_tracker.requests(), 0);
    for pod in &pods[3..] {
        controller
            .objects
            .delete_pod(&set, pod, Timing::Queued)
            .await
            .unwrap();
    }
    let set = controller.scale(&set, 0);
    controller.scale_down(&set).await;
    assert_eq!(controller.stored(&set).status.replicas, 0);
}

/// Scales a set from three to five pods while its lowest pod terminates; returns the number of
/// creations after the first sync.
async fn scale_past(terminate: impl FnOnce(&FakeObjectManager, &StatefulSet, Timestamp)) -> usize {
    let (controller, set) = up(&upstream::set(3)).await;
    let set = controller.scale(&set, 5);
    let objects = &controller.objects;
    terminate(objects, &set, controller.now());
    controller.sync(&set).await.unwrap();
    assert_eq!(objects.pods_of(&set).len(), 3);
    let created = objects.create_pod_tracker.requests();

    let going = controller.pod(&set, 0);
    objects
        .delete_pod(&set, &going, Timing::Queued)
        .await
        .unwrap();
    controller.sync(&set).await.unwrap();
    let pods = objects.pods_of(&set);
    let names: Vec<&str> = pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["foo-0", "foo-1", "foo-2"]);
    assert!(!pods[0].is_terminating());
    assert_eq!(objects.create_pod_tracker.requests(), created + 1);
    created
}

mod test_stateful_set_controller_blocks_scaling {
    use super::*;

    /// Upstream's terminating pod has no phase, so it is replaced immediately, which blocks
    /// nothing.
    #[tokio::test(start_paused = true)]
    async fn as_upstream() {
        let created = scale_past(|objects, set, now| objects.set_pod_terminated(set, 0, now)).await;
        assert_eq!(created, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_pod_on_its_way_out_is_waited_for_before_the_set_grows() {
        let created =
            scale_past(|objects, set, now| objects.add_terminating_pod(set, 0, now)).await;
        assert_eq!(created, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_controller_deletion_timestamp() {
    let set = upstream::set(3).terminating();
    let controller = Controller::with_cached(&[&set]);
    let synced = controller.sync(&set.build()).await.unwrap();
    // The sync completed without changes.
    assert!(synced.status.is_some());
    assert_eq!(controller.objects.pods_of(&set.build()).len(), 0);
    assert_eq!(controller.objects.create_pod_tracker.requests(), 0);
    assert_eq!(controller.objects.delete_pod_tracker.requests(), 0);
    assert_eq!(controller.patched(), Vec::<String>::new());
}

/// A controller whose cache misses the set's deletion, and an orphan pod that the set selects.
fn with_deletion_unseen(set: &Builder<StatefulSet>) -> Controller {
    let controller = Controller::new(&[&set.clone().terminating()]);
    controller.objects.sets.add(set.build());
    let orphan = pod(set, 1).uid("foo-1-uid").orphan();
    controller.api.load(&PODS, orphan.text());
    controller.cache_pod(&orphan);
    controller
}

/// Checks that no set adopted the pod, in the cache or in the API, and that no pod was created.
fn assert_pod_left_alone(controller: &Controller, set: &Builder<StatefulSet>) {
    let pods = controller.objects.pods_of(&set.build());
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].controller, None);
    assert_eq!(controller.objects.create_pod_tracker.requests(), 0);
    assert_eq!(controller.patched(), Vec::<String>::new());
    assert_eq!(controller.owners_of_pod("foo-1"), Vec::<Value>::new());
}

mod test_stateful_set_controller_deletion_timestamp_race {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn as_upstream() {
        let set = upstream::set(3);
        let controller = with_deletion_unseen(&set);
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {
                "name": "foo-1", "namespace": upstream::NAMESPACE, "uid": "foo-1-uid",
                "labels": {"foo": "bar"},
            },
            "revision": 1, "data": {},
        });
        controller.history.revisions.put(revision);

        let error = controller.sync(&set.build()).await.unwrap_err().to_string();
        let refused = "can't adopt ControllerRevisions: default/foo has just been deleted at ";
        assert!(error.starts_with(refused), "{error}");
        assert_pod_left_alone(&controller, &set);
        let revisions = controller.history.revisions.cache().list();
        assert_eq!(revisions.len(), 1);
        assert_eq!(revisions[0].controller, None);
    }

    /// With an orphaned revision, the sync doesn't reach the pods.
    #[tokio::test(start_paused = true)]
    async fn a_pod_is_not_adopted_for_a_set_whose_deletion_the_cache_hasnt_seen() {
        let set = upstream::set(3);
        let controller = with_deletion_unseen(&set);
        let error = controller.sync(&set.build()).await.unwrap_err().to_string();
        let refused =
            "can't adopt Pod default/foo-1 (foo-1-uid): default/foo has just been deleted at ";
        assert!(error.starts_with(refused), "{error}");
        assert_pod_left_alone(&controller, &set);
    }
}

/// The status and the next check use the same time; no event reports when a pod becomes available.
#[tokio::test(start_paused = true)]
async fn test_stateful_set_availability_check() {
    let set = upstream::set(4).min_ready_seconds(5).parallel();
    let controller = Controller::with_cached(&[&set]);
    let noon = controller.now();
    controller
        .clock
        .advance(std::time::Duration::from_millis(300));
    let ready_since = [None, Some(0), Some(2), Some(4)];
    for (ordinal, seconds) in (0..).zip(ready_since) {
        controller.cache_pod(&pod(&set, ordinal));
        let (objects, set) = (&controller.objects, set.build());
        objects.set_pod_phase(&set, ordinal, "Running");
        if let Some(seconds) = seconds {
            let since = noon - jiff::SignedDuration::from_secs(seconds);
            objects.set_pod_ready_since(&set, ordinal, since);
        }
    }
    controller.process(&set.build()).await;
    let status = controller.stored(&set.build()).status;
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 0));

    // The pod that has been ready for 4.3 seconds is available in 0.7.
    assert_eq!(controller.queue.len(), 0);
    tokio::time::advance(std::time::Duration::from_millis(699)).await;
    assert_eq!(controller.queue.len(), 0);
    tokio::time::advance(std::time::Duration::from_millis(1)).await;
    assert_eq!(controller.queue.len(), 1);
}
