//! Pods that must have been ready for some time.

use jiff::SignedDuration;
use serde_json::json;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;
use statefulset_pod_control::fake::stateful_set_pod;

use super::fixtures::{NGINX_REVISION, World};
use super::runs::Run;
use crate::testing::invariants;

/// One pod, ready for some minutes, of a set that wants an hour: how many are available.
async fn available_after(minutes: i64) -> i32 {
    let mut available = None;
    for run in Run::walks() {
        let mut world = run.with(set(1).min_ready_seconds(3600));
        world.scale_up(invariants::burst).await.unwrap();
        world.reread();
        let since = world.now - SignedDuration::from_mins(minutes);
        world.objects.set_pod_ready_since(&world.set, 0, since);
        let count = sync(&world).await.available_replicas;
        assert_eq!(*available.get_or_insert(count), count);
    }
    available.unwrap()
}

mod test_stateful_set_availability {
    use super::*;

    #[tokio::test]
    async fn replicas_running_for_required_time_when_min_ready_seconds_is_enabled() {
        assert_eq!(available_after(120).await, 1);
    }

    #[tokio::test]
    async fn replicas_not_running_for_required_time_when_min_ready_seconds_is_enabled() {
        assert_eq!(available_after(30).await, 0);
    }
}

/// A set whose pods must have been ready for half a minute.
fn half_a_minute(replicas: i32) -> Builder<StatefulSet> {
    set(replicas).min_ready_seconds(30)
}

/// Replaces the set's pods by others, without revision and uid, that have been ready for some
/// seconds.
fn replace_pods(world: &World, seconds: i64) {
    let since = world.now - SignedDuration::from_secs(seconds);
    for ordinal in 0..world.set.spec.replicas {
        let mut pod = stateful_set_pod(&world.set, ordinal);
        pod["status"] = json!({"phase": "Running"});
        world.objects.pods.put(pod);
        world
            .objects
            .set_pod_ready_since(&world.set, ordinal, since);
    }
}

async fn sync(world: &World) -> StatefulSetStatus {
    let outcome = world.sync(&world.objects.pods_of(&world.set)).await;
    outcome.unwrap().status.unwrap()
}

/// Upstream looks at nothing but how many are available: not at the pod that the second sync
/// deletes, nor at the count of the current revision, which comes to -1 there.
#[tokio::test]
async fn test_stateful_set_rolling_update_respects_min_ready_seconds() {
    for run in Run::walks() {
        let mut world = run.with(half_a_minute(2));
        replace_pods(&world, 10);
        world.change_image("updated-image");
        assert_eq!(sync(&world).await.available_replicas, 0);
        assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);

        replace_pods(&world, 60);
        let status = sync(&world).await;
        assert_eq!(status.available_replicas, 2);
        assert_eq!(status.current_replicas, 0);
        assert_eq!(world.pod_names(), ["foo-0"]);
    }
}

#[tokio::test]
async fn test_stateful_set_scale_down_respects_min_ready_seconds() {
    for run in Run::walks() {
        let mut world = run.with(half_a_minute(3));
        let mut original = world.set.clone();
        world.scale_up(invariants::monotonic).await.unwrap();
        replace_pods(&world, 10);
        original.spec.replicas = 1;
        world.set = original;
        assert_eq!(sync(&world).await.available_replicas, 0);
        assert_eq!(world.pod_names(), ["foo-0", "foo-1", "foo-2"]);
    }
}

#[tokio::test]
async fn test_stateful_set_on_delete_strategy_ignores_min_ready_seconds() {
    for run in Run::walks() {
        let mut world = run.with(half_a_minute(2).on_delete());
        world.scale_up(invariants::monotonic).await.unwrap();
        world.reread();
        replace_pods(&world, 10);
        world.change_image("updated-image");
        let status = sync(&world).await;
        assert_eq!(status.available_replicas, 0);
        // Upstream asks for any revision.
        assert!(status.update_revision.starts_with("foo-"));
        assert_eq!(&*status.current_revision, NGINX_REVISION);
        assert_ne!(status.update_revision, status.current_revision);
    }
}

#[tokio::test]
async fn test_stateful_set_zero_min_ready_seconds() {
    for run in Run::walks() {
        let world = run.with(set(2).min_ready_seconds(0));
        replace_pods(&world, 0);
        assert_eq!(sync(&world).await.available_replicas, 2);
    }
}

#[tokio::test]
async fn test_stateful_set_partition_rolling_update_with_min_ready_seconds() {
    for run in Run::walks() {
        let set = half_a_minute(4).with("spec.podManagementPolicy", "OrderedReady");
        let mut world = run.with(set.partition(2));
        replace_pods(&world, 10);
        world.change_image("updated-image");
        assert_eq!(sync(&world).await.available_replicas, 0);
        assert_eq!(world.pod_names().len(), 4);
    }
}
