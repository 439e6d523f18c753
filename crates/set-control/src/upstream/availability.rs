//! Availability after `minReadySeconds`.

use jiff::SignedDuration;
use serde_json::json;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;
use statefulset_pod_control::fake::stateful_set_pod;

use super::fixtures::{NGINX_REVISION, Walk};
use super::runs::Run;
use crate::testing::invariants;
use crate::waiting::Waiting;

/// Returns the available count of a set with one pod that has been ready for some minutes and needs
/// an hour.
async fn available_after(minutes: i64) -> i32 {
    let mut available = None;
    for run in Run::walks() {
        let mut walk = run.stored(set(1).min_ready_seconds(3600));
        walk.scale_up(invariants::burst).await.unwrap();
        walk.reread();
        let since = walk.world.now - SignedDuration::from_mins(minutes);
        walk.world.objects.set_pod_ready_since(&walk.set, 0, since);
        let count = sync(&walk).await.0.available_replicas;
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
fn replace_pods(walk: &Walk, seconds: i64) {
    for ordinal in 0..walk.set.spec.replicas {
        let mut pod = stateful_set_pod(&walk.set, ordinal);
        pod["status"] = json!({"phase": "Running"});
        walk.world.objects.pods.put(pod);
        ready_for(walk, ordinal, seconds);
    }
}

/// Sets the time for which a pod has been ready.
fn ready_for(walk: &Walk, ordinal: i32, seconds: i64) {
    let since = walk.world.now - SignedDuration::from_secs(seconds);
    walk.world
        .objects
        .set_pod_ready_since(&walk.set, ordinal, since);
}

async fn sync(walk: &Walk) -> (StatefulSetStatus, Option<Waiting>) {
    let outcome = walk.sync(&walk.world.objects.pods_of(&walk.set)).await;
    let outcome = outcome.unwrap();
    (outcome.status.unwrap(), outcome.waiting)
}

/// An ordered sync stops at the lowest pod, which isn't available yet.
async fn assert_waits_for_the_lowest(walk: &Walk) {
    let (status, waiting) = sync(walk).await;
    assert_eq!(status.available_replicas, 0);
    let pod = "foo-0".into();
    assert_eq!(waiting, Some(Waiting::PodNotAvailable(pod)));
}

mod test_stateful_set_rolling_update_respects_min_ready_seconds {
    use super::*;

    /// Upstream checks only the number of available pods: neither the pod that the second sync
    /// deletes, nor the count of the current revision, which becomes -1 there.
    #[tokio::test]
    async fn as_upstream() {
        for run in Run::walks() {
            let mut walk = run.stored(half_a_minute(2));
            replace_pods(&walk, 10);
            walk.change_image("updated-image");
            assert_waits_for_the_lowest(&walk).await;
            assert_eq!(walk.pod_names(), ["foo-0", "foo-1"]);

            replace_pods(&walk, 60);
            let (status, _) = sync(&walk).await;
            assert_eq!(status.available_replicas, 2);
            assert_eq!(status.current_replicas, 0);
            assert_eq!(walk.pod_names(), ["foo-0"]);
        }
    }

    #[tokio::test]
    async fn the_next_pod_is_updated_once_the_one_before_was_ready_for_long_enough() {
        for run in Run::walks() {
            let walk = update_the_highest(run, half_a_minute(2)).await;
            next_waits_for_the_highest(&walk, &["foo-0", "foo-1"]).await;
        }
    }
}

mod test_stateful_set_scale_down_respects_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        for run in Run::walks() {
            let mut walk = run.stored(half_a_minute(3));
            let mut original = walk.set.clone();
            walk.scale_up(invariants::monotonic).await.unwrap();
            replace_pods(&walk, 10);
            original.spec.replicas = 1;
            walk.set = original;
            assert_waits_for_the_lowest(&walk).await;
            assert_eq!(walk.pod_names(), ["foo-0", "foo-1", "foo-2"]);
        }
    }

    #[tokio::test]
    async fn a_pod_that_was_ready_too_short_doesnt_go_before_a_lower_one_is_available() {
        for run in Run::walks() {
            let mut walk = run.stored(half_a_minute(3));
            walk.scale_up(invariants::monotonic).await.unwrap();
            replace_pods(&walk, 10);
            walk.reread();
            walk.change(|set| set.spec.replicas = 1);
            ready_for(&walk, 0, 31);
            let (status, waiting) = sync(&walk).await;
            assert_eq!(status.available_replicas, 1);
            let (pod, unavailable) = ("foo-2".into(), "foo-1".into());
            let blocked = Waiting::ScaleDownBlocked { pod, unavailable };
            assert_eq!(waiting, Some(blocked));
            assert_eq!(walk.pod_names(), ["foo-0", "foo-1", "foo-2"]);

            ready_for(&walk, 2, 31);
            let (_, waiting) = sync(&walk).await;
            let pod = "foo-2".into();
            assert_eq!(waiting, Some(Waiting::ScaledDown(pod)));
            assert_eq!(walk.pod_names(), ["foo-0", "foo-1"]);
        }
    }
}

mod test_stateful_set_on_delete_strategy_ignores_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        for run in Run::walks() {
            let mut walk = run.stored(half_a_minute(2).on_delete());
            walk.scale_up(invariants::monotonic).await.unwrap();
            walk.reread();
            replace_pods(&walk, 10);
            walk.change_image("updated-image");
            let (status, waiting) = sync(&walk).await;
            assert_eq!(status.available_replicas, 0);
            // Upstream accepts any revision.
            assert!(status.update_revision.starts_with("foo-"));
            assert_eq!(&*status.current_revision, NGINX_REVISION);
            assert_ne!(status.update_revision, status.current_revision);
            let pod = "foo-0".into();
            assert_eq!(waiting, Some(Waiting::PodNotAvailable(pod)));
            assert_eq!(walk.pod_names(), ["foo-0", "foo-1"]);
        }
    }

    /// In ordered sets such pods stop the sync before the update; in parallel sets they don't.
    #[tokio::test]
    async fn pods_that_the_user_updates_stay_however_long_they_are_ready() {
        for seconds in [10, 31] {
            for run in Run::walks() {
                let mut walk = run.stored(half_a_minute(2).on_delete().parallel());
                walk.scale_up(invariants::burst).await.unwrap();
                walk.reread();
                replace_pods(&walk, seconds);
                walk.change_image("updated-image");
                let (status, waiting) = sync(&walk).await;
                assert_eq!(status.available_replicas, if seconds > 30 { 2 } else { 0 });
                let pod = "foo-0".into();
                assert_eq!(waiting, Some(Waiting::PodDeletionByUser(pod)));
                assert_eq!(walk.pod_names(), ["foo-0", "foo-1"]);
            }
        }
    }
}

#[tokio::test]
async fn test_stateful_set_zero_min_ready_seconds() {
    for run in Run::walks() {
        let walk = run.stored(set(2).min_ready_seconds(0));
        replace_pods(&walk, 0);
        assert_eq!(sync(&walk).await.0.available_replicas, 2);
    }
}

mod test_stateful_set_partition_rolling_update_with_min_ready_seconds {
    use super::*;

    #[tokio::test]
    async fn as_upstream() {
        for run in Run::walks() {
            let set = half_a_minute(4).with("spec.podManagementPolicy", "OrderedReady");
            let mut walk = run.stored(set.partition(2));
            replace_pods(&walk, 10);
            walk.change_image("updated-image");
            assert_waits_for_the_lowest(&walk).await;
            assert_eq!(walk.pod_names().len(), 4);
        }
    }

    #[tokio::test]
    async fn down_to_the_partition_too_pods_must_be_ready_for_long_enough() {
        for run in Run::walks() {
            let walk = update_the_highest(run, half_a_minute(4).partition(2)).await;
            next_waits_for_the_highest(&walk, &["foo-0", "foo-1", "foo-2", "foo-3"]).await;
        }
    }
}

/// Replaces the highest pod of a parallel set from another template; it just became ready.
async fn update_the_highest(run: Run, set: Builder<StatefulSet>) -> Walk {
    let mut walk = run.stored(set.parallel());
    walk.scale_up(invariants::burst).await.unwrap();
    walk.reread();
    walk.change_image("updated-image");
    let highest = walk.set.spec.replicas - 1;
    for _ in 0..2 {
        sync(&walk).await;
        walk.reread();
    }
    walk.world
        .objects
        .set_pod_phase(&walk.set, highest, "Running");
    ready_for(&walk, highest, 0);
    walk
}

/// The pods below the updated one stay until it is available; then the next one is deleted.
async fn next_waits_for_the_highest(walk: &Walk, names: &[&str]) {
    let (last, below) = names.split_last().unwrap();
    let (next, kept) = below.split_last().unwrap();
    let highest = walk.set.spec.replicas - 1;
    for seconds in [10, 29] {
        ready_for(walk, highest, seconds);
        let (_, waiting) = sync(walk).await;
        let pod = (*last).into();
        assert_eq!(waiting, Some(Waiting::UpdatedPodUnavailable(pod)));
        assert_eq!(walk.pod_names(), names);
    }
    ready_for(walk, highest, 31);
    let (_, waiting) = sync(walk).await;
    let pod = (*next).into();
    assert_eq!(waiting, Some(Waiting::PodUpdated(pod)));
    assert_eq!(walk.pod_names(), [kept, &[*last]].concat());
}
