//! Rollouts: deletion order and completion.

use super::*;

const NEW: &str = "registry.example/app:2";

fn updated(pod: &str) -> Option<Waiting> {
    Some(Waiting::PodUpdated(pod.into()))
}

/// A world with a settled set that then gets another image.
async fn rolled(set: &Builder<StatefulSet>) -> World {
    rolled_in(world(set), set).await
}

async fn rolled_in(mut world: World, set: &Builder<StatefulSet>) -> World {
    world.settle().await;
    world.apply(&set.clone().image(NEW).generation(2));
    world
}

fn names(set: &Builder<StatefulSet>) -> (String, String) {
    (revision_name(set), revision_name(&set.clone().image(NEW)))
}

#[tokio::test]
async fn rollout_replaces_one_pod_at_a_time_from_the_top() {
    let set = web();
    let (old, new) = names(&set);
    let mut world = rolled(&set).await;
    for (index, name) in ["web-2", "web-1", "web-0"].into_iter().enumerate() {
        assert_eq!(world.step().await, updated(name));
        let done = i32::try_from(index).unwrap();
        // The deleted pod still counts, except for its revision.
        assert_eq!(
            world.counts(),
            Counts::all(3).current(2 - done).updated(done)
        );
        let status = &world.set.status;
        assert_eq!(
            (&*status.current_revision, &*status.update_revision),
            (&*old, &*new)
        );
        let pod = name.into();
        assert_eq!(world.step().await, Some(Waiting::PodCreated(pod)));
        assert_eq!(world.pod_revision(name), new);
        world.run(name);
    }
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(3));
    assert_eq!(
        *world.set.status.current_revision, *new,
        "the rollout is complete"
    );
}

#[tokio::test]
async fn broken_updated_pod_blocks_until_its_deletion() {
    let set = web();
    let mut world = rolled(&set).await;
    world.step().await;
    world.step().await;
    world.set_phase("web-2", "Pending");
    // Even with the template fixed, an ordered set processes the pod first.
    world.apply(&set.generation(3));
    for _ in 0..3 {
        assert_eq!(world.step().await, not_ready("web-2"));
    }
    assert_eq!(world.pod_names().len(), 3);
}

#[tokio::test]
async fn parallel_set_deletes_a_broken_old_pod() {
    let set = web().parallel();
    let mut world = rolled(&set).await;
    world.put_pod(&pod(&set, 2).unready());
    world.put_pod(&pod(&set, 0).unready());
    assert_eq!(world.step().await, updated("web-2"));
    world.step().await;
    world.run("web-2");
    assert_eq!(world.step().await, updated("web-1"));
}

#[tokio::test]
async fn partition_keeps_pods_below_it() {
    let set = web().start(5).partition(2);
    let (old, new) = names(&set);
    let mut world = rolled(&set).await;
    assert_eq!(world.step().await, updated("web-7"));
    world.settle().await;
    assert_eq!(world.pod_revision("web-6"), old);
    assert_eq!(world.pod_revision("web-7"), new);
    assert_eq!(*world.set.status.current_revision, *old);
    // A pod below the partition gets its old revision back.
    world.remove_pod("web-5");
    world.settle().await;
    assert_eq!(world.pod_revision("web-5"), old);
    assert_eq!(world.counts(), Counts::all(3).current(2).updated(1));
}

#[tokio::test]
async fn on_delete_waits_for_the_user() {
    let set = web().on_delete();
    let (_, new) = names(&set);
    let mut world = rolled(&set).await;
    let waiting = Waiting::PodDeletionByUser("web-0".into());
    assert_eq!(world.step().await, Some(waiting));
    assert_eq!(world.requests(Call::DeletePod), 0);
    world.remove_pod("web-1");
    let pod = "web-1".into();
    assert_eq!(world.step().await, Some(Waiting::PodCreated(pod)));
    assert_eq!(world.pod_revision("web-1"), new);
}

#[tokio::test]
async fn scale_down_precedes_the_update() {
    let set = web();
    let mut world = rolled(&set).await;
    world.apply(&set.image(NEW).generation(3).replicas(2));
    let pod = "web-2".into();
    assert_eq!(world.step().await, Some(Waiting::ScaledDown(pod)));
    assert_eq!(world.step().await, updated("web-1"));
}

#[tokio::test]
async fn gate_deletes_several_pods_at_once() {
    let set = web().replicas(5).max_unavailable("50%");
    let mut world = rolled_in(with_max_unavailable(&set), &set).await;
    let outcome = world.sync().await;
    assert_eq!(outcome.waiting, updated("web-4"));
    assert_eq!(
        (outcome.max_unavailable, outcome.unavailable_replicas),
        (Some(2), Some(0))
    );
    assert_eq!(world.pod_names(), ["web-0", "web-1", "web-2"]);
    assert_eq!(world.counts(), Counts::all(5).current(3).updated(0));
}

#[tokio::test]
async fn unavailable_pods_count_against_the_budget() {
    let set = web().parallel().max_unavailable(2);
    let mut world = rolled_in(with_max_unavailable(&set), &set).await;
    world.put_pod(&pod(&set, 0).unready());
    world.put_pod(&pod(&set, 1).terminating());
    let outcome = world.sync().await;
    let waiting = Waiting::UnavailableBudget {
        pod: "web-0".into(),
        unavailable: 2,
        max_unavailable: 2,
    };
    assert_eq!(outcome.waiting, Some(waiting));
    assert_eq!(outcome.unavailable_replicas, Some(2));
    assert_eq!(world.pod_names().len(), 3);
}

#[tokio::test]
async fn gauges_are_unset_without_the_gate() {
    let set = web().max_unavailable(2);
    let mut world = rolled(&set).await;
    let outcome = world.sync().await;
    assert_eq!(
        (outcome.max_unavailable, outcome.unavailable_replicas),
        (None, None)
    );
    assert_eq!(world.pod_names().len(), 2, "one pod at a time");
}

#[tokio::test]
async fn early_stop_reports_only_max_unavailable() {
    let set = web().max_unavailable(2);
    let mut world = with_max_unavailable(&set);
    let outcome = world.sync().await;
    assert_eq!(
        (outcome.max_unavailable, outcome.unavailable_replicas),
        (Some(2), None)
    );
}

#[tokio::test]
async fn invalid_max_unavailable_fails_without_a_status_write() {
    let set = web().max_unavailable(2);
    let mut world = rolled_in(with_max_unavailable(&set), &set).await;
    world.apply(&set.image(NEW).max_unavailable("two").generation(2));
    let writes = world.requests(Call::UpdateStatus);
    let outcome = world.sync().await;
    assert_eq!(
        outcome.error.unwrap().to_string(),
        "invalid value for IntOrString: invalid type: string is not a percentage"
    );
    assert!(outcome.status.is_some());
    assert_eq!(world.requests(Call::UpdateStatus), writes);
    assert_eq!(world.pod_names().len(), 3);
}

#[tokio::test]
async fn failed_deletion_is_not_counted() {
    let set = web().replicas(4).max_unavailable(3);
    let mut world = rolled_in(with_max_unavailable(&set), &set).await;
    world.fail(Call::DeletePod, 1);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert_eq!(
        world.counts(),
        Counts::all(4).current(3).updated(0),
        "the first deletion counts"
    );
    assert_eq!(world.pod_names(), ["web-0", "web-1", "web-2"]);
}

#[tokio::test]
async fn counters_never_go_below_zero() {
    let set = web().replicas(1);
    let mut world = rolled(&set).await;
    world.put_pod(&pod(&set, 0).revision("web-third"));
    assert_eq!(world.step().await, updated("web-0"));
    assert_eq!(world.counts(), Counts::all(1).current(0).updated(0));
}

#[tokio::test]
async fn outdated_new_pod_is_deleted_in_the_same_sync() {
    let set = web()
        .replicas(1)
        .parallel()
        .with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let mut world = rolled(&set).await;
    assert_eq!(world.set.status.current_replicas, 1);
    world.remove_pod("web-0");
    assert_eq!(world.step().await, updated("web-0"));
    assert_eq!(
        world.events(),
        [
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful",
            "Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful",
        ]
    );
    assert!(world.pod_names().is_empty());
}

#[tokio::test]
async fn rollback_reuses_the_old_revision() {
    let set = web().replicas(1);
    let (old, _) = names(&set);
    let mut world = rolled(&set).await;
    world.settle().await;
    world.apply(&set.generation(3));
    world.settle().await;
    assert_eq!(*world.set.status.update_revision, *old);
    assert_eq!(world.pod_revision("web-0"), old);
    let revisions = world.history.revisions.cache().list();
    let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}
