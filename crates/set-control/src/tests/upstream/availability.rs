//! Availability after `minReadySeconds`.

use jiff::SignedDuration;
use statefulset_controller_util::stateful_set::StatefulSet;

use super::walks::{Builder, NGINX_REVISION, World, invariants, set, stateful_set_pod, walks};
use crate::waiting::Waiting;

/// Returns the available count of a set with one pod that has been ready for some minutes and needs
/// an hour.
async fn available_after(minutes: i64) -> i32 {
    let mut available = None;
    for mut world in walks(set(1).min_ready_seconds(3600)) {
        world.scale_up(invariants::burst).await.unwrap();
        let since = world.now - SignedDuration::from_mins(minutes);
        world.set_ready_since(0, since);
        world.step().await;
        let count = world.set.status.available_replicas;
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

/// A set with `minReadySeconds` of 30.
fn half_a_minute(replicas: i32) -> Builder<StatefulSet> {
    set(replicas).min_ready_seconds(30)
}

/// Replaces the set's pods with others, without revision and uid, that have been ready for some
/// seconds.
fn replace_pods(world: &World, seconds: i64) {
    for ordinal in 0..world.set.spec.replicas {
        let pod = stateful_set_pod(&world.set, ordinal);
        world.put_pod(&pod.phase("Running"));
        ready_for(world, ordinal, seconds);
    }
}

/// Sets the time for which a pod has been ready.
fn ready_for(world: &World, ordinal: i32, seconds: i64) {
    let since = world.now - SignedDuration::from_secs(seconds);
    world.set_ready_since(ordinal, since);
}

/// An ordered sync stops at the lowest pod, which isn't available yet.
async fn assert_waits_for_the_lowest(world: &mut World) {
    let pod = "foo-0".into();
    assert_eq!(world.step().await, Some(Waiting::PodNotAvailable(pod)));
    assert_eq!(world.set.status.available_replicas, 0);
}

mod test_stateful_set_rolling_update_respects_min_ready_seconds {
    use super::*;

    /// Upstream checks only the number of available pods: neither the pod that the second sync
    /// deletes, nor the count of the current revision, which becomes -1 there.
    #[tokio::test]
    async fn as_upstream() {
        for mut world in walks(half_a_minute(2)) {
            replace_pods(&world, 10);
            world.change_image("updated-image");
            assert_waits_for_the_lowest(&mut world).await;
            assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);

            replace_pods(&world, 60);
            world.step().await;
            let status = &world.set.status;
            assert_eq!(status.available_replicas, 2);
            assert_eq!(status.current_replicas, 0);
            assert_eq!(world.pod_names(), ["foo-0"]);
        }
    }

    #[tokio::test]
    async fn next_pod_waits_for_updated_pod_to_be_available() {
        for mut world in walks(half_a_minute(2).parallel()) {
            update_the_highest(&mut world).await;
            next_waits_for_the_highest(&mut world, &["foo-0", "foo-1"]).await;
        }
    }
}

mod test_stateful_set_scale_down_respects_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        for mut world in walks(half_a_minute(3)) {
            let mut original = world.set.clone();
            world.scale_up(invariants::monotonic).await.unwrap();
            replace_pods(&world, 10);
            original.spec.replicas = 1;
            world.set = original;
            assert_waits_for_the_lowest(&mut world).await;
            assert_eq!(world.pod_names(), ["foo-0", "foo-1", "foo-2"]);
        }
    }

    #[tokio::test]
    async fn condemned_pod_waits_for_lower_unavailable_pod() {
        for mut world in walks(half_a_minute(3)) {
            world.scale_up(invariants::monotonic).await.unwrap();
            replace_pods(&world, 10);
            world.scale(1);
            ready_for(&world, 0, 31);
            let waiting = world.step().await;
            let status = &world.set.status;
            assert_eq!(status.available_replicas, 1);
            let (pod, unavailable) = ("foo-2".into(), "foo-1".into());
            let blocked = Waiting::ScaleDownBlocked { pod, unavailable };
            assert_eq!(waiting, Some(blocked));
            assert_eq!(world.pod_names(), ["foo-0", "foo-1", "foo-2"]);

            ready_for(&world, 2, 31);
            let waiting = world.step().await;
            let pod = "foo-2".into();
            assert_eq!(waiting, Some(Waiting::ScaledDown(pod)));
            assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);
        }
    }
}

mod test_stateful_set_on_delete_strategy_ignores_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        for mut world in walks(half_a_minute(2).on_delete()) {
            world.scale_up(invariants::monotonic).await.unwrap();
            replace_pods(&world, 10);
            world.change_image("updated-image");
            let waiting = world.step().await;
            let status = &world.set.status;
            assert_eq!(status.available_replicas, 0);
            // Upstream accepts any revision.
            assert!(status.update_revision.starts_with("foo-"));
            assert_eq!(&*status.current_revision, NGINX_REVISION);
            assert_ne!(status.update_revision, status.current_revision);
            let pod = "foo-0".into();
            assert_eq!(waiting, Some(Waiting::PodNotAvailable(pod)));
            assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);
        }
    }

    /// In ordered sets such pods stop the sync before the update; in parallel sets they don't.
    #[tokio::test]
    async fn on_delete_never_deletes_pods() {
        for seconds in [10, 31] {
            for mut world in walks(half_a_minute(2).on_delete().parallel()) {
                world.scale_up(invariants::burst).await.unwrap();
                replace_pods(&world, seconds);
                world.change_image("updated-image");
                let waiting = world.step().await;
                let status = &world.set.status;
                assert_eq!(status.available_replicas, if seconds > 30 { 2 } else { 0 });
                let pod = "foo-0".into();
                assert_eq!(waiting, Some(Waiting::PodDeletionByUser(pod)));
                assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);
            }
        }
    }
}

#[tokio::test]
async fn test_stateful_set_zero_min_ready_seconds() {
    for mut world in walks(set(2).min_ready_seconds(0)) {
        replace_pods(&world, 0);
        world.step().await;
        assert_eq!(world.set.status.available_replicas, 2);
    }
}

mod test_stateful_set_partition_rolling_update_with_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        let set = half_a_minute(4).with("spec.podManagementPolicy", "OrderedReady");
        for mut world in walks(set.partition(2)) {
            replace_pods(&world, 10);
            world.change_image("updated-image");
            assert_waits_for_the_lowest(&mut world).await;
            assert_eq!(world.pod_names().len(), 4);
        }
    }

    #[tokio::test]
    async fn partitioned_update_waits_for_min_ready_seconds() {
        for mut world in walks(half_a_minute(4).partition(2).parallel()) {
            update_the_highest(&mut world).await;
            next_waits_for_the_highest(&mut world, &["foo-0", "foo-1", "foo-2", "foo-3"]).await;
        }
    }
}

/// Replaces the highest pod of a parallel set from another template; it just became ready.
async fn update_the_highest(world: &mut World) {
    world.scale_up(invariants::burst).await.unwrap();
    world.change_image("updated-image");
    world.step().await;
    world.step().await;
    let highest = world.set.spec.replicas - 1;
    world.set_phase(highest, "Running");
    ready_for(world, highest, 0);
}

/// The pods below the updated one stay until it is available; then the next one is deleted.
async fn next_waits_for_the_highest(world: &mut World, names: &[&str]) {
    let (last, below) = names.split_last().unwrap();
    let (next, kept) = below.split_last().unwrap();
    let highest = world.set.spec.replicas - 1;
    for seconds in [10, 29] {
        ready_for(world, highest, seconds);
        let waiting = world.step().await;
        let pod = (*last).into();
        assert_eq!(waiting, Some(Waiting::UpdatedPodUnavailable(pod)));
        assert_eq!(world.pod_names(), names);
    }
    ready_for(world, highest, 31);
    let waiting = world.step().await;
    let pod = (*next).into();
    assert_eq!(waiting, Some(Waiting::PodUpdated(pod)));
    assert_eq!(world.pod_names(), [kept, &[*last]].concat());
}
