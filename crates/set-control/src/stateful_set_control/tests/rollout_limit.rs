//! Rollouts that are paused, or end before their last pod.

use statefulset_opt_ins::Carrier;

use super::*;

fn annotate(world: &mut World, carrier: Carrier, value: &str) {
    world.update(|set| {
        let metadata = Arc::make_mut(&mut set.metadata);
        let annotations = &mut metadata.annotations;
        annotations.insert(carrier.annotation().to_owned(), value.to_owned());
    });
}

/// Returns, for each pod, whether it has the update revision.
fn updated(world: &World) -> Vec<bool> {
    let revision = &world.set.status.update_revision;
    let pods = world.pods();
    pods.iter()
        .map(|pod| pod.revision() == &**revision)
        .collect()
}

#[tokio::test]
async fn paused_rollout_replaces_no_pod() {
    let mut world = opted_in(&web());
    world.settle().await;
    world.change_image("good");
    world.step().await;
    world.step().await;
    world.run("web-2");
    annotate(&mut world, Carrier::Paused, "true");
    world.settle().await;
    assert_eq!(updated(&world), [false, false, true]);

    // A lost pod that was updated, or that has an outdated one above it, gets its revision again.
    for pod in ["web-2", "web-0"] {
        world.remove_pod(pod);
        world.settle().await;
        assert_eq!(updated(&world), [false, false, true], "{pod}");
    }
    annotate(&mut world, Carrier::Paused, "false");
    world.settle().await;
    assert_eq!(updated(&world), [true; 3]);
}

#[tokio::test]
async fn lost_pods_of_a_paused_rollout_keep_their_revision() {
    let mut world = opted_in(&web().replicas(4));
    world.settle().await;
    annotate(&mut world, Carrier::Paused, "true");
    annotate(&mut world, Carrier::RolloutTo, "ordinal=3");
    world.change_image("good");
    world.settle().await;
    assert_eq!(updated(&world), [false; 4], "the pause counts more");
    annotate(&mut world, Carrier::Paused, "false");
    world.settle().await;
    let expected = [false, false, false, true];
    assert_eq!(updated(&world), expected);
    annotate(&mut world, Carrier::Paused, "true");
    for pod in ["web-3", "web-2", "web-0"] {
        world.remove_pod(pod);
        world.settle().await;
        assert_eq!(updated(&world), expected, "{pod}");
    }
}

#[tokio::test]
async fn paused_set_scales() {
    let mut world = opted_in(&web());
    world.settle().await;
    annotate(&mut world, Carrier::Paused, "true");
    world.change_image("good");
    world.scale(5);
    world.settle().await;
    assert_eq!(updated(&world), [false, false, false, true, true]);
    world.scale(2);
    world.settle().await;
    assert_eq!(updated(&world), [false, false]);
}

#[tokio::test]
async fn rollout_ends_at_its_limit() {
    for (limit, expected) in [
        ("0", [false, false, false]),
        ("1", [false, false, true]),
        ("ordinal=6", [false, true, true]),
        ("ordinal=0", [true, true, true]),
        ("9", [true, true, true]),
    ] {
        for set in [web().start(5), web().start(5).parallel()] {
            let mut world = opted_in(&set);
            world.settle().await;
            annotate(&mut world, Carrier::RolloutTo, limit);
            world.change_image("good");
            world.settle().await;
            assert_eq!(updated(&world), expected, "{limit}");
            assert_eq!(
                world.set.status.current_revision == world.set.status.update_revision,
                expected[0]
            );
        }
    }
}

#[tokio::test]
async fn partition_of_the_set_counts_if_it_is_higher() {
    let mut world = opted_in(&web().partition(2));
    world.settle().await;
    annotate(&mut world, Carrier::RolloutTo, "3");
    world.change_image("good");
    world.settle().await;
    assert_eq!(updated(&world), [false, false, true]);
}

#[tokio::test]
async fn pause_has_no_effect_under_other_strategies() {
    let mut world = opted_in(&web().on_delete());
    world.settle().await;
    annotate(&mut world, Carrier::Paused, "true");
    world.change_image("good");
    world.remove_pod("web-1");
    world.step().await;
    world.run_all();
    world.step().await;
    assert_eq!(updated(&world), [false, true, false]);
    let events = world.events();
    let warnings: Vec<_> = events
        .iter()
        .filter(|it| it.starts_with("Warning"))
        .collect();
    assert_eq!(
        warnings,
        [
            "Warning InvalidAnnotation statefulset-controller-manager/paused: only the update \
          strategy RollingUpdate can be paused, limited or carried out in place"
        ]
    );
}
