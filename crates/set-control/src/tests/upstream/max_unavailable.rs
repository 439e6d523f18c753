//! Updates of up to `maxUnavailable` pods at once.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{
    StatefulSet, StatefulSetStatus, UpdateStrategyType,
};

use super::walks::{
    Builder, FOO_REVISION, NGINX_REVISION, World, invariants, ordinal_of, set, walks_with,
};
use crate::rolling_update::{
    delete_outdated_pods, get_stateful_set_max_unavailable,
    update_stateful_set_after_invariant_established,
};

/// Returns worlds with the gate `MaxUnavailableStatefulSet`.
fn gated(set: Builder<StatefulSet>) -> impl Iterator<Item = World> {
    let gates = FeatureGates::default().max_unavailable_stateful_set(true);
    walks_with(gates, set)
}

/// A set of six pods of which the upper three are updated, two at a time.
fn two_of_three(set: Builder<StatefulSet>) -> Builder<StatefulSet> {
    set.partition(3).max_unavailable(2)
}

fn ordered() -> Builder<StatefulSet> {
    set(6).with("spec.podManagementPolicy", "OrderedReady")
}

/// Returns the pods except that of an ordinal.
fn without(pods: &[Arc<Pod>], ordinal: i32) -> Vec<Arc<Pod>> {
    let pods = pods.iter().filter(|pod| ordinal_of(pod) != ordinal);
    pods.cloned().collect()
}

/// Changes the image, after which the first sync deletes the two highest pods.
async fn delete_two(world: &mut World) {
    world.scale_up(invariants::burst).await.unwrap();
    world.change_image("foo");
    let before = world.pods();
    world.step().await;
    assert_eq!(world.pods(), before[..4]);
}

/// Checks that the upper three pods have the new revision and the others the old one.
fn assert_updated(world: &World) {
    let pods = world.pods();
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
        for mut world in gated(two_of_three(ordered())) {
            delete_two(&mut world).await;
            world.step().await;
            assert_eq!(world.pod_names().len(), 5);
            world.run(4);
            world.step().await;
            assert_eq!(world.pod_names().len(), 6);

            world.run(5);
            let before = world.pods();
            world.step().await;
            assert_eq!(world.pods(), without(&before, 3));
            world.step().await;
            world.run(3);
            let before = world.pods();
            world.step().await;
            assert_eq!(world.pods(), before);
            assert_updated(&world);
        }
    }

    #[tokio::test]
    async fn parallel() {
        for mut world in gated(two_of_three(set(6).parallel())) {
            delete_two(&mut world).await;
            world.step().await;
            assert_eq!(world.pod_names().len(), 6);
            world.run(4);
            // Pod 5 is the unavailable one, so one more may be deleted.
            let before = world.pods();
            world.step().await;
            assert_eq!(world.pods(), without(&before, 3));
            world.step().await;
            assert_eq!(world.pod_names().len(), 6);

            world.run(3);
            world.run(5);
            let before = world.pods();
            world.step().await;
            assert_eq!(world.pods(), before);
            assert_updated(&world);
        }
    }
}

/// Runs upstream's update step, to an unnamed revision, with the existing pods.
async fn update_step(world: &World, status: &mut StatefulSetStatus) -> Option<usize> {
    let (set, now) = (&world.set, world.now);
    let plan = update_stateful_set_after_invariant_established(set, &world.slots(), "", false, now)
        .unwrap();
    let pod_control = world.pod_control.for_sync(set);
    delete_outdated_pods(&pod_control, &plan.delete, status)
        .await
        .unwrap();
    plan.unavailable
}

/// Checks that with these pods terminating, the update step deletes those of `deleted`. Upstream
/// only counts the remaining pods.
async fn verify_invariant(terminating: &[i32], deleted: &[i32]) {
    for mut world in gated(two_of_three(ordered())) {
        world.scale_up(invariants::burst).await.unwrap();
        for ordinal in terminating {
            world.add_terminating_pod(*ordinal);
        }
        world.change_image("foo");
        let mut expected = world.pods();
        expected.retain(|pod| !deleted.contains(&ordinal_of(pod)));

        let mut status = StatefulSetStatus {
            replicas: 6,
            ..StatefulSetStatus::default()
        };
        let unavailable = update_step(&world, &mut status).await;
        assert_eq!(world.pods(), expected);
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

/// Changes the image, and makes the lowest pods unavailable: terminating in parallel sets, not
/// ready in others.
async fn make_unavailable(world: &mut World, unready: i32) {
    world.scale_up(invariants::burst).await.unwrap();
    world.change_image("foo");
    for ordinal in 0..world.set.spec.replicas {
        if ordinal < unready && world.set.spec.allows_burst() {
            world.add_terminating_pod(ordinal);
        } else {
            world.set_ready(ordinal, ordinal >= unready);
        }
    }
}

/// Checks the maximum and the number of unavailable pods, which upstream reads from two gauges.
/// Here the inputs of the gauges are checked: the update step's count, and the outcome of a whole
/// sync. A sync counts only if it reaches the step, so neither for `OnDelete` nor with an unready
/// pod in an ordered set. The tests of the controller's metrics read the gauges for the same sets.
async fn metrics(set: Builder<StatefulSet>, unready: i32, counts: [usize; 2]) {
    for mut world in gated(set.clone()) {
        make_unavailable(&mut world, unready).await;
        let mut status = StatefulSetStatus::default();
        let unavailable = update_step(&world, &mut status).await;
        assert_eq!(unavailable, Some(counts[1]));
        assert_eq!(get_stateful_set_max_unavailable(&world.set), Ok(counts[0]));
    }
    for mut world in gated(set) {
        make_unavailable(&mut world, unready).await;
        let spec = &world.set.spec;
        let comes_to_step = spec.update_strategy.strategy_type != UpdateStrategyType::OnDelete
            && (spec.allows_burst() || unready == 0);
        let outcome = world.sync().await;
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
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

fn computes(desired: impl Into<Value>, replicas: i32, expected: usize) {
    let desired = desired.into();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": desired}});
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
