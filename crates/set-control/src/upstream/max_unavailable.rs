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
use super::fixtures::{FOO_REVISION, NGINX_REVISION, Walk};
use super::runs::Run;
use crate::rolling_update::{
    delete_outdated_pods, get_stateful_set_max_unavailable,
    update_stateful_set_after_invariant_established,
};
use crate::testing::invariants;

/// Syncs with the existing pods.
async fn sync(walk: &Walk) {
    walk.sync(&walk.world.objects.pods_of(&walk.set))
        .await
        .unwrap();
}

fn make_ready(walk: &Walk, ordinal: i32) {
    walk.world
        .objects
        .set_pod_phase(&walk.set, ordinal, "Running");
    walk.world
        .objects
        .set_pod_ready(&walk.set, ordinal, true, walk.world.now);
}

/// Returns the pods except that of an ordinal.
fn without(pods: &[Arc<Pod>], ordinal: i32) -> Vec<Arc<Pod>> {
    let pods = pods.iter().filter(|pod| ordinal_of(pod) != ordinal);
    pods.cloned().collect()
}

/// Returns a cluster with a set of six pods after an image change. The upper three are updated two
/// at a time, and the first sync has deleted the two highest.
async fn two_deleted(run: Run, set: Builder<StatefulSet>) -> Walk {
    let mut walk = run.with_max_unavailable(set.partition(3).max_unavailable(2));
    walk.scale_up(invariants::burst).await.unwrap();
    walk.reread();
    walk.change_image("foo");
    let before = walk.world.objects.pods_of(&walk.set);
    walk.sync(&before).await.unwrap();
    assert_eq!(walk.world.objects.pods_of(&walk.set), before[..4]);
    walk
}

/// Checks that the upper three pods have the new revision and the others the old one.
fn assert_updated(walk: &Walk) {
    let pods = walk.world.objects.pods_of(&walk.set);
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
            let walk = two_deleted(run, set(6).with("spec.podManagementPolicy", "OrderedReady"));
            let walk = walk.await;
            sync(&walk).await;
            assert_eq!(walk.pod_names().len(), 5);
            make_ready(&walk, 4);
            sync(&walk).await;
            assert_eq!(walk.pod_names().len(), 6);

            make_ready(&walk, 5);
            let before = walk.world.objects.pods_of(&walk.set);
            sync(&walk).await;
            assert_eq!(walk.world.objects.pods_of(&walk.set), without(&before, 3));
            sync(&walk).await;
            make_ready(&walk, 3);
            let before = walk.world.objects.pods_of(&walk.set);
            sync(&walk).await;
            assert_eq!(walk.world.objects.pods_of(&walk.set), before);
            assert_updated(&walk);
        }
    }

    #[tokio::test]
    async fn parallel() {
        for run in Run::walks() {
            let walk = two_deleted(run, set(6).parallel()).await;
            sync(&walk).await;
            assert_eq!(walk.pod_names().len(), 6);
            make_ready(&walk, 4);
            // Pod 5 is the unavailable one, so one more may be deleted.
            let before = walk.world.objects.pods_of(&walk.set);
            sync(&walk).await;
            assert_eq!(walk.world.objects.pods_of(&walk.set), without(&before, 3));
            sync(&walk).await;
            assert_eq!(walk.pod_names().len(), 6);

            make_ready(&walk, 3);
            make_ready(&walk, 5);
            let before = walk.world.objects.pods_of(&walk.set);
            sync(&walk).await;
            assert_eq!(walk.world.objects.pods_of(&walk.set), before);
            assert_updated(&walk);
        }
    }
}

/// Runs upstream's update step, to an unnamed revision, with the existing pods.
async fn update_step(walk: &Walk, status: &mut StatefulSetStatus) -> Option<usize> {
    let pods = walk.world.objects.pods_of(&walk.set);
    let place = |pod: &Arc<Pod>| PodSlot::Existing(ordinal_of(pod).into(), Arc::clone(pod));
    let places: Vec<PodSlot> = pods.iter().map(place).collect();
    let (set, now) = (&walk.set, walk.world.now);
    let plan =
        update_stateful_set_after_invariant_established(set, &places, "", false, now).unwrap();
    let pod_control = walk.world.pods.for_sync(set);
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
        let mut walk = run.with_max_unavailable(set.partition(3).max_unavailable(2));
        walk.scale_up(invariants::burst).await.unwrap();
        walk.reread();
        for ordinal in terminating {
            let now = walk.world.now;
            walk.world
                .objects
                .add_terminating_pod(&walk.set, *ordinal, now);
        }
        walk.change_image("foo");
        let mut expected = walk.world.objects.pods_of(&walk.set);
        expected.retain(|pod| !deleted.contains(&ordinal_of(pod)));

        let mut status = StatefulSetStatus {
            replicas: 6,
            ..StatefulSetStatus::default()
        };
        let unavailable = update_step(&walk, &mut status).await;
        assert_eq!(walk.world.objects.pods_of(&walk.set), expected);
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
async fn with_unready(run: Run, set: Builder<StatefulSet>, unready: i32) -> Walk {
    let mut walk = run.with_max_unavailable(set);
    walk.scale_up(invariants::burst).await.unwrap();
    walk.reread();
    walk.change_image("foo");
    let now = walk.world.now;
    for ordinal in 0..walk.set.spec.replicas {
        if ordinal < unready && walk.set.spec.allows_burst() {
            walk.world
                .objects
                .add_terminating_pod(&walk.set, ordinal, now);
        } else {
            walk.world
                .objects
                .set_pod_ready(&walk.set, ordinal, ordinal >= unready, now);
        }
    }
    walk
}

/// Checks the maximum and the number of unavailable pods, which upstream reads from two gauges.
/// Here the inputs of the gauges are checked: the update step's count, and the outcome of a whole
/// sync. A sync counts only if it reaches the step, so neither for `OnDelete` nor with an unready
/// pod in an ordered set. The tests of the controller's metrics read the gauges for the same sets.
async fn metrics(set: Builder<StatefulSet>, unready: i32, counts: [usize; 2]) {
    for run in Run::walks() {
        let walk = with_unready(run, set.clone(), unready).await;
        let mut status = StatefulSetStatus::default();
        let unavailable = update_step(&walk, &mut status).await;
        assert_eq!(unavailable, Some(counts[1]));
        assert_eq!(get_stateful_set_max_unavailable(&walk.set), Ok(counts[0]));

        let walk = with_unready(run, set.clone(), unready).await;
        let spec = &walk.set.spec;
        let comes_to_step = spec.update_strategy.strategy_type != UpdateStrategyType::OnDelete
            && (spec.allows_burst() || unready == 0);
        let pods = walk.world.objects.pods_of(&walk.set);
        let outcome = walk.sync(&pods).await.unwrap();
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
