//! Updates under `maxUnavailable` with unavailable pods of an old revision, since 1.37.

use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_controller_util::stateful_set::StatefulSetStatus;

use super::walks::{World, ordinal_of, set, stateful_set_pod, walks_with};
use crate::rolling_update::{delete_outdated_pods, plan};

/// Seconds until a ready pod counts as available.
const MIN_READY_SECONDS: i32 = 30;

/// A case: policy (`P` parallel, `O` ordered), `n` replicas, `m` maximum, `p` partition; then the
/// pods that are `u` not ready, `t` terminating, or `f` fresh: ready, but not yet available.
fn world(case: &str) -> World {
    let mut set = set(0).min_ready_seconds(MIN_READY_SECONDS).partition(0);
    let mut pods = Vec::new();
    for word in case.split(' ') {
        let number = || {
            word[1..]
                .parse::<i32>()
                .expect("a number follows the letter")
        };
        set = match &word[..1] {
            "P" => set.parallel(),
            "O" => set.with("spec.podManagementPolicy", "OrderedReady"),
            "n" => set.replicas(number()),
            "m" => set.max_unavailable(number()),
            "p" => set.partition(number()),
            state => {
                pods.push((state.to_owned(), number()));
                set
            }
        };
    }
    let gates = FeatureGates::at(KubeVersion::v1(37));
    let mut world = walks_with(gates, set).next().expect("there is a walk");
    for ordinal in 0..world.set.spec.replicas {
        let pod = stateful_set_pod(&world.set, ordinal).uid(&format!("foo-{ordinal}-uid"));
        world.put_pod(&pod.revision("old"));
        world.run(ordinal);
    }
    for (state, ordinal) in pods {
        match state.as_str() {
            "u" => world.set_ready(ordinal, false),
            "t" => world.change_pod(ordinal, |pod| {
                pod["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
            }),
            "f" => world.set_ready_since(ordinal, world.now),
            other => panic!("unknown state {other}"),
        }
    }
    world.change_image("foo");
    world
}

async fn left_after(case: &str) -> Vec<i32> {
    let world = world(case);
    let (set, now) = (&world.set, world.now);
    let gates = FeatureGates::at(KubeVersion::v1(37));
    let plan = plan(set, &world.slots(), "new", gates, now).unwrap();
    let mut status = StatefulSetStatus::default();
    let control = world.pod_control.for_sync(set);
    let deleted = delete_outdated_pods(&control, &plan.delete, &mut status);
    deleted.await.unwrap();
    world.pods().iter().map(|pod| ordinal_of(pod)).collect()
}

/// All pods have an old revision. The result is the ordinals of the pods that the step leaves;
/// terminating ones stay.
#[tokio::test]
async fn test_stateful_set_control_rolling_update_with_max_unavailable_and_unavailable_stale_pod() {
    let cases: [(&str, &[i32]); 22] = [
        ("P n1 m1 u0", &[]),
        ("P n3 m1 u2", &[0, 1]),
        ("P n5 m2 u3 u4", &[0, 1, 2]),
        ("O n1 m1 u0", &[0]),
        ("O n3 m1 u2", &[0, 1, 2]),
        ("O n5 m2 u4", &[0, 1, 2, 3]),
        ("P n3 m1 t2", &[0, 1, 2]),
        ("O n3 m1 t2", &[0, 1, 2]),
        ("P n5 m3 u3 t4", &[0, 1, 4]),
        ("P n3 m1 f2", &[0, 1]),
        ("O n3 m1 f2", &[0, 1, 2]),
        ("P n5 m3 t3 u4", &[0, 1, 3]),
        ("O n5 m3 u3 t4", &[0, 1, 2, 4]),
        ("O n5 m3 t3 u4", &[0, 1, 2, 3]),
        ("P n5 p2 m1 u4", &[0, 1, 2, 3]),
        ("P n5 p2 m1 u2", &[0, 1, 3, 4]),
        ("P n5 p2 m1 u1", &[0, 1, 2, 3, 4]),
        ("O n5 p2 m1 u4", &[0, 1, 2, 3, 4]),
        ("P n5 p3 m2 u3 u4", &[0, 1, 2]),
        ("P n5 p3 m2 u1 u4", &[0, 1, 2, 3]),
        ("P n4 m2 u0 u1", &[2, 3]),
        ("P n5 m3 u0 u1", &[2, 3]),
    ];
    for (case, left) in cases {
        assert_eq!(left_after(case).await, left, "{case}");
    }
}
