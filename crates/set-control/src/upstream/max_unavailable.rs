//! Updates of up to `maxUnavailable` pods at once.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    StatefulSet, StatefulSetStatus, UpdateStrategyType,
};
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;
use statefulset_pod_control::PodSlot;

use super::drivers::ordinal_of;
use super::fixtures::{FOO_REVISION, NGINX_REVISION, World};
use super::runs::Run;
use crate::rolling_update::{
    delete_outdated_pods, get_stateful_set_max_unavailable,
    update_stateful_set_after_invariant_established,
};
use crate::testing::invariants;

/// Syncs with the existing pods.
async fn sync(world: &World) {
    world
        .sync(&world.objects.pods_of(&world.set))
        .await
        .unwrap();
}

fn make_ready(world: &World, ordinal: i32) {
    world.objects.set_pod_phase(&world.set, ordinal, "Running");
    world
        .objects
        .set_pod_ready(&world.set, ordinal, true, world.now);
}

/// Returns the pods except that of an ordinal.
fn without(pods: &[Arc<Pod>], ordinal: i32) -> Vec<Arc<Pod>> {
    let pods = pods.iter().filter(|pod| ordinal_of(pod) != ordinal);
    pods.cloned().collect()
}

/// Returns a cluster with a set of six pods after an image change. The upper three are updated two
/// at a time, and the first sync has deleted the two highest.
async fn two_deleted(run: Run, set: Builder<StatefulSet>) -> World {
    let mut world = run.with_max_unavailable(set.partition(3).max_unavailable(2));
    world.scale_up(invariants::burst).await.unwrap();
    world.reread();
    world.change_image("foo");
    let before = world.objects.pods_of(&world.set);
    world.sync(&before).await.unwrap();
    assert_eq!(world.objects.pods_of(&world.set), before[..4]);
    world
}

/// Checks that the upper three pods have the new revision and the others the old one.
fn assert_updated(world: &World) {
    let pods = world.objects.pods_of(&world.set);
    let revisions: Vec<&str> = pods.iter().map(|pod| pod.revision()).collect();
    assert_eq!(revisions, [[NGINX_REVISION; 3], [FOO_REVISION; 3]].concat());
}

mod test_stateful_set_control_rolling_update_with_max_unavailable {
    use super::*;

    /// Upstream passes the third sync a list from before pod 4 was ready. Its fake recreates the
    /// pod, and pod 5 never appears, so the rest of the test proves nothing. Here every sync sees
    /// the current pods, and the update completes.
    #[tokio::test]
    async fn ordered_ready() {
        for run in Run::walks() {
            let world = two_deleted(run, set(6).with("spec.podManagementPolicy", "OrderedReady"));
            let world = world.await;
            sync(&world).await;
            assert_eq!(world.pod_names().len(), 5);
            make_ready(&world, 4);
            sync(&world).await;
            assert_eq!(world.pod_names().len(), 6);

            make_ready(&world, 5);
            let before = world.objects.pods_of(&world.set);
            sync(&world).await;
            assert_eq!(world.objects.pods_of(&world.set), without(&before, 3));
            sync(&world).await;
            make_ready(&world, 3);
            let before = world.objects.pods_of(&world.set);
            sync(&world).await;
            assert_eq!(world.objects.pods_of(&world.set), before);
            assert_updated(&world);
        }
    }

    #[tokio::test]
    async fn parallel() {
        for run in Run::walks() {
            let world = two_deleted(run, set(6).parallel()).await;
            sync(&world).await;
            assert_eq!(world.pod_names().len(), 6);
            make_ready(&world, 4);
            // Pod 5 is the unavailable one, so one more may be deleted.
            let before = world.objects.pods_of(&world.set);
            sync(&world).await;
            assert_eq!(world.objects.pods_of(&world.set), without(&before, 3));
            sync(&world).await;
            assert_eq!(world.pod_names().len(), 6);

            make_ready(&world, 3);
            make_ready(&world, 5);
            let before = world.objects.pods_of(&world.set);
            sync(&world).await;
            assert_eq!(world.objects.pods_of(&world.set), before);
            assert_updated(&world);
        }
    }
}

/// Runs upstream's update step, to an unnamed revision, with the existing pods.
async fn update_step(world: &World, status: &mut StatefulSetStatus) -> Option<usize> {
    let pods = world.objects.pods_of(&world.set);
    let place = |pod: &Arc<Pod>| PodSlot::Existing(ordinal_of(pod).into(), Arc::clone(pod));
    let places: Vec<PodSlot> = pods.iter().map(place).collect();
    let (set, now) = (&world.set, world.now);
    let plan =
        update_stateful_set_after_invariant_established(set, &places, "", false, now).unwrap();
    let pod_control = world.pods.for_sync(set);
    delete_outdated_pods(&pod_control, &plan.delete, status)
        .await
        .unwrap();
    plan.unavailable
}

/// Checks that with these pods terminating, the update step deletes those of `deleted`. Upstream
/// only counts the remaining pods.
async fn verify_invariant(terminating: &[i32], deleted: &[i32]) {
    for run in Run::walks() {
        let set = set(6).with("spec.podManagementPolicy", "OrderedReady");
        let mut world = run.with_max_unavailable(set.partition(3).max_unavailable(2));
        world.scale_up(invariants::burst).await.unwrap();
        world.reread();
        for ordinal in terminating {
            let now = world.now;
            world.objects.add_terminating_pod(&world.set, *ordinal, now);
        }
        world.change_image("foo");
        let mut expected = world.objects.pods_of(&world.set);
        expected.retain(|pod| !deleted.contains(&ordinal_of(pod)));

        let mut status = StatefulSetStatus {
            replicas: 6,
            ..StatefulSetStatus::default()
        };
        let unavailable = update_step(&world, &mut status).await;
        assert_eq!(world.objects.pods_of(&world.set), expected);
        assert_eq!(unavailable, Some(terminating.len()));
    }
}

mod test_stateful_set_control_rolling_update_with_max_unavailable_in_ordered_mode_verify_invariant {
    use super::*;

    #[tokio::test]
    async fn terminating_pod_at_ordinal() {
        verify_invariant(&[], &[5, 4]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_5() {
        verify_invariant(&[5], &[4]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_3() {
        verify_invariant(&[3], &[5]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_4() {
        verify_invariant(&[4], &[5]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_5_4() {
        verify_invariant(&[5, 4], &[]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_5_3() {
        verify_invariant(&[5, 3], &[]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_4_3() {
        verify_invariant(&[4, 3], &[]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_5_4_3() {
        verify_invariant(&[5, 4, 3], &[]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_2() {
        verify_invariant(&[2], &[5]).await;
    }

    #[tokio::test]
    async fn terminating_pod_at_ordinal_1() {
        verify_invariant(&[1], &[5]).await;
    }
}

/// Returns a cluster with a changed image whose lowest pods are unavailable: terminating in
/// parallel sets, not ready in others.
async fn with_unready(run: Run, set: Builder<StatefulSet>, unready: i32) -> World {
    let mut world = run.with_max_unavailable(set);
    world.scale_up(invariants::burst).await.unwrap();
    world.reread();
    world.change_image("foo");
    let now = world.now;
    for ordinal in 0..world.set.spec.replicas {
        if ordinal < unready && world.set.spec.allows_burst() {
            world.objects.add_terminating_pod(&world.set, ordinal, now);
        } else {
            world
                .objects
                .set_pod_ready(&world.set, ordinal, ordinal >= unready, now);
        }
    }
    world
}

/// Checks the maximum and the number of unavailable pods, which upstream reads from two gauges.
/// Here the inputs of the gauges are checked: the update step's count, and the outcome of a whole
/// sync. A sync counts only if it reaches the step, so neither for `OnDelete` nor with an unready
/// pod in an ordered set. The tests of the controller's metrics read the gauges for the same sets.
async fn metrics(set: Builder<StatefulSet>, unready: i32, counts: [usize; 2]) {
    for run in Run::walks() {
        let world = with_unready(run, set.clone(), unready).await;
        let mut status = StatefulSetStatus::default();
        let unavailable = update_step(&world, &mut status).await;
        assert_eq!(unavailable, Some(counts[1]));
        assert_eq!(get_stateful_set_max_unavailable(&world.set), Ok(counts[0]));

        let world = with_unready(run, set.clone(), unready).await;
        let spec = &world.set.spec;
        let comes_to_step = spec.update_strategy.strategy_type != UpdateStrategyType::OnDelete
            && (spec.allows_burst() || unready == 0);
        let pods = world.objects.pods_of(&world.set);
        let outcome = world.sync(&pods).await.unwrap();
        assert_eq!(outcome.max_unavailable, Some(counts[0]));
        let counted = comes_to_step.then_some(counts[1]);
        assert_eq!(outcome.unavailable_replicas, counted);
    }
}

fn rolling(replicas: i32, max_unavailable: impl Into<Value>) -> Builder<StatefulSet> {
    let set = set(replicas).partition(0);
    set.max_unavailable(max_unavailable)
}

mod test_stateful_set_metrics {
    use super::*;

    #[tokio::test]
    async fn ordered_pods_within_limit() {
        metrics(rolling(5, 2), 1, [2, 1]).await;
    }

    #[tokio::test]
    async fn parallel_pods_exceeding_limit() {
        metrics(rolling(10, "20%").parallel(), 3, [2, 3]).await;
    }

    #[tokio::test]
    async fn ordered_pods_exactly_at_limit() {
        metrics(rolling(6, 3), 3, [3, 3]).await;
    }

    #[tokio::test]
    async fn parallel_pods_all_available() {
        metrics(rolling(4, 1).parallel(), 0, [1, 0]).await;
    }

    #[tokio::test]
    async fn ordered_pods_with_percentage_max_unavailable() {
        metrics(rolling(8, "25%"), 1, [2, 1]).await;
    }

    #[tokio::test]
    async fn parallel_pods_with_large_percentage() {
        metrics(rolling(5, "80%").parallel(), 4, [4, 4]).await;
    }

    #[tokio::test]
    async fn small_statefulset_with_max_unavailable_1() {
        metrics(rolling(2, 1), 1, [1, 1]).await;
    }

    #[tokio::test]
    async fn single_pod_statefulset() {
        metrics(rolling(1, 1).parallel(), 1, [1, 1]).await;
    }

    #[tokio::test]
    async fn on_delete_strategy_defaults_to_max_unavailable_1() {
        metrics(set(3).on_delete(), 2, [1, 2]).await;
    }

    #[tokio::test]
    async fn on_delete_strategy_with_parallel_management() {
        metrics(set(4).on_delete().parallel(), 1, [1, 1]).await;
    }

    #[tokio::test]
    async fn rolling_update_with_nil_max_unavailable_defaults_to_1() {
        metrics(rolling(5, Value::Null), 2, [1, 2]).await;
    }

    #[tokio::test]
    async fn rolling_update_with_nil_max_unavailable_and_parallel_pods() {
        metrics(rolling(6, Value::Null).parallel(), 0, [1, 0]).await;
    }
}

fn computes(wanted: impl Into<Value>, replicas: i32, expected: usize) {
    let wanted = wanted.into();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": wanted}});
    let set = set(replicas).with("spec.updateStrategy", strategy).build();
    assert_eq!(get_stateful_set_max_unavailable(&set), Ok(expected));
}

mod test_get_stateful_set_max_unavailable {
    use super::*;

    #[test]
    fn case_0() {
        computes(Value::Null, 10, 1);
    }

    #[test]
    fn case_1() {
        computes(3, 10, 3);
    }

    #[test]
    fn case_2() {
        computes(3, 0, 3);
    }

    #[test]
    fn case_3() {
        computes(0, 0, 1);
    }

    #[test]
    fn case_4() {
        computes("10%", 25, 2);
    }

    #[test]
    fn case_5() {
        computes("100%", 5, 5);
    }

    #[test]
    fn case_6() {
        computes("50%", 5, 2);
    }

    #[test]
    fn case_7() {
        computes("10%", 5, 1);
    }

    #[test]
    fn case_8() {
        computes("1%", 0, 1);
    }

    #[test]
    fn case_9() {
        computes("0%", 0, 1);
    }
}
