//! Conditions of a set over its syncs.

use jiff::SignedDuration;
use statefulset_controller_util::stateful_set::Condition;
use statefulset_opt_ins::Carrier;

use super::*;

fn watched(set: Builder<StatefulSet>) -> Builder<StatefulSet> {
    set.annotation(Carrier::Conditions.annotation(), "true")
}

fn with_deadline(set: Builder<StatefulSet>, reaction: &str) -> Builder<StatefulSet> {
    set.annotation(Carrier::ProgressDeadline.annotation(), "10m")
        .annotation(Carrier::OnDeadline.annotation(), reaction)
}

fn condition(world: &World, kind: &str) -> Condition {
    let conditions = world.set.status.conditions.as_ref();
    let condition = conditions.and_then(|conditions| conditions.get(kind));
    condition.unwrap_or_else(|| panic!("no condition {kind}"))
}

/// Returns status and reason of Available, Progressing, Reconciling and Stalled.
fn states(world: &World) -> [String; 4] {
    ["Available", "Progressing", "Reconciling", "Stalled"].map(|kind| {
        let condition = condition(world, kind);
        format!("{} {}", condition.status, condition.reason)
    })
}

fn all(available: &str, rest: [&str; 3], reason: &str) -> [String; 4] {
    let [progressing, reconciling, stalled] = rest.map(|status| format!("{status} {reason}"));
    [available.to_owned(), progressing, reconciling, stalled]
}

fn break_pod(world: &World, pod: &str, reason: &str) {
    let container = json!({"name": "main", "state": {"waiting": {"reason": reason}}});
    world.change_pod(pod, |pod| {
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [container]});
    });
}

fn wait(world: &mut World, minutes: i64) {
    world.now += SignedDuration::from_mins(minutes);
}

#[tokio::test]
async fn rollout_is_told_from_its_begin_to_its_end() {
    let some = "False PodsUnavailable";
    let every = "True AllPodsAvailable";
    let mut world = opted_in(&watched(web()));
    world.step().await;
    assert_eq!(
        states(&world),
        all(some, ["True", "True", "False"], "InProgress")
    );
    world.settle().await;
    assert_eq!(
        states(&world),
        all(every, ["True", "False", "False"], "Settled")
    );
    let settled = condition(&world, "Reconciling");
    assert_eq!(
        &*settled.message,
        "3 of 3 pods are updated, 3 are available"
    );

    world.change_image("bad");
    world.step().await;
    assert_eq!(
        states(&world),
        all(every, ["True", "True", "False"], "InProgress")
    );
    world.step().await;
    break_pod(&world, "web-2", "ErrImagePull");
    world.step().await;
    assert_eq!(
        states(&world),
        all(some, ["False", "False", "True"], "ImagePull")
    );
    world.change_image("good");
    world.step().await;
    assert_eq!(
        states(&world),
        all(some, ["False", "False", "True"], "OldRevisionBlocks")
    );
}

#[tokio::test]
async fn conditions_cost_no_write_while_nothing_changes() {
    for set in [web(), web().partition(2), web().parallel()] {
        let mut world = opted_in(&with_deadline(watched(set), "stall"));
        world.settle().await;
        world.change_image("good");
        world.settle().await;
        let writes = world.requests(Call::UpdateStatus);
        for _ in 0..5 {
            wait(&mut world, 60);
            world.step().await;
        }
        assert_eq!(world.requests(Call::UpdateStatus), writes);
    }
}

#[tokio::test]
async fn user_holds_a_rollout_without_stalling_it() {
    for (set, reason) in [
        (web().partition(1), "Partition"),
        (
            web().annotation(Carrier::Paused.annotation(), "true"),
            "Paused",
        ),
        (
            web().annotation(Carrier::RolloutTo.annotation(), "1"),
            "RolloutLimit",
        ),
        (web().on_delete(), "OnDelete"),
    ] {
        let mut world = opted_in(&with_deadline(watched(set), "stall"));
        world.settle().await;
        world.change_image("good");
        for _ in 0..9 {
            world.step().await;
            world.run_all();
        }
        wait(&mut world, 60);
        world.step().await;
        let expected = all(
            "True AllPodsAvailable",
            ["Unknown", "False", "False"],
            reason,
        );
        assert_eq!(states(&world), expected);
    }
}

#[tokio::test]
async fn deadline_counts_from_the_last_progress() {
    let mut world = opted_in(&with_deadline(web(), "stall"));
    world.settle().await;
    world.change_image("good");
    world.step().await;
    world.step().await;
    world.set_phase("web-2", "Pending");
    world.step().await;
    wait(&mut world, 9);
    let outcome = world.sync().await;
    assert_eq!(states(&world)[3], "False PodStarting");
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 60);

    // A leader that starts now continues with the stored time.
    world.restart(FeatureGates::default().with_opt_ins());
    wait(&mut world, 1);
    world.step().await;
    assert_eq!(states(&world)[3], "True ProgressDeadlineExceeded");
    assert_eq!(states(&world)[1], "False ProgressDeadlineExceeded");
    world.run("web-2");
    world.step().await;
    assert_eq!(states(&world)[3], "False InProgress");
    let requeue = world.sync().await.requeue_after;
    assert!(
        requeue.is_some_and(|delay| delay.as_secs() <= 600),
        "{requeue:?}"
    );
}

#[tokio::test]
async fn deadline_pauses_until_the_spec_changes() {
    let mut world = opted_in(&with_deadline(web(), "pause"));
    world.settle().await;
    world.change_image("slow");
    world.step().await;
    world.step().await;
    world.set_phase("web-2", "Pending");
    world.step().await;
    wait(&mut world, 10);
    world.step().await;
    assert_eq!(states(&world)[3], "True ProgressDeadlineExceeded");
    world.run("web-2");
    for _ in 0..5 {
        assert_eq!(world.step().await, None);
    }
    assert_eq!(world.requests(Call::DeletePod), 1);
    let expected = all(
        "True AllPodsAvailable",
        ["False", "False", "True"],
        "ProgressDeadlineExceeded",
    );
    assert_eq!(states(&world), expected);
    // Neither a pod's trouble nor its end continues the rollout.
    break_pod(&world, "web-2", "CrashLoopBackOff");
    world.step().await;
    assert_eq!(states(&world)[3], "True ProgressDeadlineExceeded");
    world.run("web-2");
    for _ in 0..5 {
        world.step().await;
    }
    assert_eq!(world.requests(Call::DeletePod), 1);

    world.update(|set| Arc::make_mut(&mut set.metadata).generation += 1);
    world.settle().await;
    assert_eq!(world.counts(), Counts::all(3));
    assert_eq!(states(&world)[3], "False Settled");
}

#[tokio::test]
async fn conditions_vanish_when_the_set_opts_out() {
    let foreign = json!([{"type": "Theirs", "status": "True", "lastTransitionTime": null}]);
    let mut world = opted_in(&watched(web()).with("status.conditions", foreign));
    world.settle().await;
    assert_eq!(
        world.set.status.conditions.as_ref().unwrap().list().len(),
        5
    );
    world.update(|set| {
        let metadata = Arc::make_mut(&mut set.metadata);
        metadata
            .annotations
            .remove(Carrier::Conditions.annotation());
    });
    world.step().await;
    let left = world.set.status.conditions.as_ref().unwrap().list();
    let left: Vec<_> = left.iter().map(|it| &*it.condition_type).collect();
    assert_eq!(left, ["Theirs"]);
}

#[tokio::test]
async fn conditions_of_others_stay_whatever_their_names() {
    let theirs = json!([
        {"type": "Reconciling", "status": "True", "reason": "InProgress"},
        {"type": "Stalled", "status": "False", "reason": "InProgress"},
    ]);
    let mut world = opted_in(&web().with("status.conditions", theirs));
    world.settle().await;
    assert_eq!(
        world.set.status.conditions.as_ref().unwrap().list().len(),
        2
    );
}

#[tokio::test]
async fn invalid_annotation_is_told_once() {
    let set = web().annotation(Carrier::Repair.annotation(), "sometimes");
    let mut world = opted_in(&set);
    world.step().await;
    let message = "statefulset-controller-manager/repair: \"sometimes\": expected none, evict or \
                   delete";
    let warning = format!("Warning InvalidAnnotation {message}");
    let count = |events: Vec<String>| events.iter().filter(|it| **it == warning).count();
    assert_eq!(count(world.events()), 1);
    let invalid = condition(&world, "OptInsValid");
    assert_eq!((&*invalid.status, &*invalid.message), ("False", message));
    world.step().await;
    assert_eq!(count(world.events()), 0);
    world.update(|set| {
        let metadata = Arc::make_mut(&mut set.metadata);
        metadata.annotations.remove(Carrier::Repair.annotation());
    });
    world.step().await;
    assert_eq!(world.set.status.conditions, None);
}

#[tokio::test]
async fn recreate_keeps_the_condition_of_the_reference() {
    let gates = FeatureGates::at(statefulset_client::feature_gates::KubeVersion::v1(37))
        .with_opt_ins()
        .stateful_set_recreate_strategy(true);
    let set = watched(web()).with("spec.updateStrategy", json!({"type": "Recreate"}));
    let mut world = with_gates(&set, gates);
    world.settle().await;
    world.change_image("good");
    world.settle().await;
    let expected = [
        "True AllPodsAvailable",
        "False RecreateCompleted",
        "False Settled",
        "False Settled",
    ];
    assert_eq!(states(&world), expected);
}
