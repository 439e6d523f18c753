//! Gates before the removal of pods.

use statefulset_controller_util::stateful_set::UpdateStrategyType;
use statefulset_opt_ins::removal_gate::REQUESTED_LABEL;
use statefulset_opt_ins::{Carrier, Wait};

use super::*;

const HOLD: &str = "example.com/hold";

/// A set whose pods get the label that holds them, and claims that are deleted on scaling.
fn gated() -> Builder<StatefulSet> {
    web()
        .annotation(Carrier::RemovalGate.annotation(), "example.com/hold=yes")
        .claim_template("data")
        .retention("Delete", "Retain")
}

/// Holds all pods by a label or an annotation.
fn hold(world: &World, place: &str, value: &str) {
    for pod in world.pods() {
        world.change_pod(&pod, |pod| pod["metadata"][place][HOLD] = value.into());
    }
}

/// Lifts the gate of one pod, held by a label.
fn lift(world: &World, pod: &str) {
    world.change_pod(pod, |pod| pod["metadata"]["labels"][HOLD] = "no".into());
}

/// Gates with which updates have a budget of several pods.
fn with_budget() -> FeatureGates {
    FeatureGates::default()
        .with_opt_ins()
        .max_unavailable_stateful_set(true)
}

fn held(pod: &str) -> Option<Waiting> {
    let wait = Wait::RemovalGate {
        pod: pod.into(),
        gate: "example.com/hold=yes".into(),
        opens_at: None,
    };
    Some(wait.into())
}

fn requested(world: &World, pod: &str) -> Option<String> {
    world
        .pod(pod)
        .labels
        .get(REQUESTED_LABEL)
        .map(str::to_owned)
}

#[tokio::test]
async fn condemned_pod_and_its_claim_stay_until_the_gate_is_lifted() {
    for place in ["labels", "annotations"] {
        let mut world = opted_in(&gated());
        world.settle().await;
        hold(&world, place, "yes");
        world.scale(1);
        for _ in 0..3 {
            assert_eq!(world.step().await, held("web-2"));
        }
        assert_eq!(requested(&world, "web-2").as_deref(), Some("1772366400"));
        assert_eq!(requested(&world, "web-1"), None, "one pod at a time");
        assert!(world.owners_of_claim("data-web-2").is_empty());
        assert_eq!(world.requests(Call::DeletePod), 0);
        assert_eq!(
            world.requests(Call::UpdatePod),
            1,
            "the request is made once"
        );

        world.change_pod("web-2", |pod| pod["metadata"][place][HOLD] = "no".into());
        assert_eq!(
            world.step().await,
            Some(Waiting::ScaledDown("web-2".into()))
        );
        assert_eq!(world.owners_of_claim("data-web-2").len(), 1);
        assert_eq!(world.step().await, held("web-1"));
    }
}

#[tokio::test]
async fn parallel_set_removes_the_pods_whose_gate_is_lifted() {
    let mut world = opted_in(&gated().parallel());
    world.settle().await;
    hold(&world, "labels", "yes");
    lift(&world, "web-1");
    world.scale(0);
    assert_eq!(
        world.step().await,
        Some(Waiting::ScaledDown("web-1".into()))
    );
    assert_eq!(world.pod_names(), ["web-0", "web-2"]);
    assert!(world.owners_of_claim("data-web-2").is_empty());
    assert_eq!(world.step().await, held("web-2"));
}

#[tokio::test]
async fn gate_holds_updates_and_repairs() {
    let set = gated().annotation(Carrier::Repair.annotation(), "delete");
    let mut world = opted_in(&set);
    world.settle().await;
    hold(&world, "labels", "yes");
    world.change_image("good");
    assert_eq!(world.step().await, held("web-2"));
    let container = json!({"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    world.change_pod("web-1", |pod| {
        pod["status"] = json!({"phase": "Running", "containerStatuses": [container]});
    });
    assert_eq!(world.step().await, held("web-1"));
    assert_eq!(world.requests(Call::DeletePod), 0);
    hold(&world, "labels", "no");
    assert_eq!(
        world.step().await,
        Some(Wait::BlockingPodReplaced("web-1".into()).into())
    );
}

#[tokio::test]
async fn gate_no_longer_holds_after_its_time() {
    let set = gated().annotation(Carrier::RemovalGateTimeout.annotation(), "1h");
    let mut world = opted_in(&set);
    world.settle().await;
    hold(&world, "labels", "yes");
    world.scale(2);
    // The event of the label brings the next sync.
    assert_eq!(world.sync().await.requeue_after, None);
    let outcome = world.sync().await;
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 3600);
    world.now = "2026-03-01T13:00:00Z".parse().unwrap();
    assert_eq!(
        world.step().await,
        Some(Waiting::ScaledDown("web-2".into()))
    );
}

#[tokio::test]
async fn first_end_of_a_gate_wakes_the_set() {
    let gated = gated().annotation(Carrier::RemovalGateTimeout.annotation(), "1h");
    let mut world = opted_in(&gated.parallel());
    world.settle().await;
    hold(&world, "labels", "yes");
    world.scale(2);
    world.step().await;
    world.now = "2026-03-01T12:10:00Z".parse().unwrap();
    world.scale(0);
    world.step().await;
    // The pod that is named first was asked last.
    let outcome = world.sync().await;
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 3000);
}

#[tokio::test]
async fn ordered_set_updates_no_pod_before_a_held_one() {
    let mut world = with_gates(&gated().max_unavailable("100%"), with_budget());
    world.settle().await;
    hold(&world, "labels", "yes");
    lift(&world, "web-1");
    world.change_image("good");
    assert_eq!(world.step().await, held("web-2"));
    assert_eq!(world.requests(Call::DeletePod), 0);
    assert_eq!(requested(&world, "web-0"), None, "one pod at a time");
    lift(&world, "web-2");
    assert_eq!(world.step().await, held("web-0"));
    assert_eq!(world.pod_names(), ["web-0"]);
}

#[tokio::test]
async fn pod_that_cannot_be_asked_holds_no_other() {
    let mut world = opted_in(&gated().parallel());
    world.settle().await;
    hold(&world, "labels", "yes");
    lift(&world, "web-1");
    world.scale(0);
    world.fail(Call::UpdatePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    assert_eq!(world.pod_names(), ["web-0", "web-2"]);

    let mut world = with_gates(&gated().parallel().max_unavailable("100%"), with_budget());
    world.settle().await;
    hold(&world, "labels", "yes");
    lift(&world, "web-0");
    world.change_image("good");
    world.fail(Call::UpdatePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    assert_eq!(world.pod_names(), ["web-1", "web-2"]);
}

#[tokio::test]
async fn request_is_withdrawn_if_the_pod_stays() {
    let mut world = opted_in(&gated());
    world.settle().await;
    hold(&world, "labels", "yes");
    world.scale(2);
    assert_eq!(world.step().await, held("web-2"));
    world.scale(3);
    assert_eq!(world.step().await, None);
    assert_eq!(requested(&world, "web-2"), None);

    let image = world.set.clone();
    world.change_image("good");
    assert_eq!(world.step().await, held("web-2"));
    assert!(requested(&world, "web-2").is_some());
    world.update(|set| set.spec.template = image.spec.template.clone());
    assert_eq!(world.step().await, None);
    assert_eq!(requested(&world, "web-2"), None);
}

#[tokio::test]
async fn request_stays_without_parameters_of_the_update() {
    let set = gated().with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let mut world = opted_in(&set);
    world.settle().await;
    hold(&world, "labels", "yes");
    world.change_image("good");
    for _ in 0..4 {
        assert_eq!(world.step().await, held("web-2"));
    }
    assert_eq!(world.requests(Call::UpdatePod), 1);
}

#[tokio::test]
async fn request_is_withdrawn_if_only_users_replace_pods() {
    let mut world = opted_in(&gated());
    world.settle().await;
    hold(&world, "labels", "yes");
    world.change_image("good");
    assert_eq!(world.step().await, held("web-2"));
    world.update(|set| {
        set.spec.update_strategy.strategy_type = UpdateStrategyType::OnDelete;
        set.spec.update_strategy.rolling_update = None;
    });
    world.step().await;
    assert_eq!(requested(&world, "web-2"), None);
}

#[tokio::test]
async fn claims_that_were_doomed_before_the_gate_are_released() {
    let mut world = opted_in(&web().claim_template("data").retention("Delete", "Retain"));
    world.settle().await;
    // An ordered set dooms the claims of all condemned pods before it removes the first one.
    world.set_ready("web-0", false);
    world.scale(1);
    world.step().await;
    world.run("web-0");
    world.step().await;
    assert_eq!(world.owners_of_claim("data-web-1").len(), 1);
    world.update(|set| {
        let metadata = Arc::make_mut(&mut set.metadata);
        let gate = Carrier::RemovalGate.annotation().to_owned();
        metadata
            .annotations
            .insert(gate, "example.com/hold=yes".to_owned());
    });
    hold(&world, "labels", "yes");
    assert_eq!(world.step().await, held("web-1"));
    assert!(world.owners_of_claim("data-web-1").is_empty());
}

#[tokio::test]
async fn claims_of_pods_that_wait_for_their_turn_are_released() {
    let mut world = opted_in(&web().claim_template("data").retention("Delete", "Retain"));
    world.settle().await;
    world.scale(1);
    // The sync that removes the first pod dooms the claims of all condemned ones.
    world.fail(Call::DeletePod, 0);
    world.sync_error().await;
    assert_eq!(world.owners_of_claim("data-web-1").len(), 1);
    world.update(|set| {
        let metadata = Arc::make_mut(&mut set.metadata);
        let gate = Carrier::RemovalGate.annotation().to_owned();
        let hold = "example.com/hold=yes".to_owned();
        metadata.annotations.insert(gate, hold);
    });
    hold(&world, "labels", "yes");
    assert_eq!(world.step().await, held("web-2"));
    for claim in ["data-web-1", "data-web-2"] {
        assert!(world.owners_of_claim(claim).is_empty(), "{claim}");
    }
}

#[tokio::test]
async fn claim_of_a_terminating_pod_behind_a_held_one_follows_the_policy() {
    for (policy, owners) in [("Delete", 1), ("Retain", 0)] {
        let ungated = web().claim_template("data").retention("Delete", "Retain");
        let mut world = opted_in(&ungated);
        world.settle().await;
        world.scale(1);
        world.fail(Call::DeletePod, 0);
        world.sync_error().await;
        assert_eq!(world.owners_of_claim("data-web-1").len(), 1);
        hold(&world, "labels", "yes");
        world.change_pod("web-1", |pod| {
            pod["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
        });
        let gated = gated().retention(policy, "Retain").build();
        world.update(|set| {
            set.metadata = gated.metadata;
            set.spec.claim_retention_policy = gated.spec.claim_retention_policy;
        });
        assert_eq!(world.step().await, held("web-2"));
        let found = world.owners_of_claim("data-web-1").len();
        assert_eq!(found, owners, "{policy}");
    }
}

#[tokio::test]
async fn failed_withdrawal_stops_no_update() {
    let mut world = opted_in(&gated().parallel());
    world.settle().await;
    hold(&world, "labels", "yes");
    world.scale(0);
    world.step().await;
    lift(&world, "web-2");
    world.scale(3);
    world.change_image("good");
    world.update(|set| {
        let rolling_update = set.spec.update_strategy.rolling_update.as_mut();
        rolling_update.unwrap().partition = 1;
    });
    world.fail(Call::UpdatePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    assert!(requested(&world, "web-0").is_some());
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
}

#[tokio::test]
async fn failed_withdrawal_stops_no_creation() {
    let mut world = opted_in(&gated());
    world.settle().await;
    hold(&world, "labels", "yes");
    world.scale(2);
    assert_eq!(world.step().await, held("web-2"));
    world.scale(3);
    world.remove_pod("web-0");
    world.fail(Call::UpdatePod, 0);
    world.sync_error().await;
    assert_eq!(world.pod_names(), ["web-0", "web-1", "web-2"]);
}

/// Gates with the strategy `Recreate`.
fn with_recreate() -> FeatureGates {
    FeatureGates::at(statefulset_client::feature_gates::KubeVersion::v1(37))
        .with_opt_ins()
        .stateful_set_recreate_strategy(true)
}

#[tokio::test]
async fn claims_that_the_set_keeps_are_released_while_recreate_waits() {
    let set = gated().with("spec.updateStrategy", json!({"type": "Recreate"}));
    let mut world = with_gates(&set, with_recreate());
    world.settle().await;
    world.scale(2);
    world.fail(Call::DeletePod, 0);
    world.sync_error().await;
    assert_eq!(world.owners_of_claim("data-web-2").len(), 1);
    world.change_pod("web-2", |pod| {
        pod["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    });
    // The user takes the scale-down back, and the pod that still stops must not take its claim along.
    world.scale(3);
    hold(&world, "labels", "yes");
    world.change_image("good");
    assert_eq!(world.step().await, held("web-0"));
    assert!(world.owners_of_claim("data-web-2").is_empty());
}

#[tokio::test]
async fn recreate_waits_for_every_gate() {
    let set = gated().with("spec.updateStrategy", json!({"type": "Recreate"}));
    let mut world = with_gates(&set, with_recreate());
    world.settle().await;
    hold(&world, "labels", "yes");
    lift(&world, "web-0");
    world.change_image("good");
    assert_eq!(world.step().await, held("web-1"));
    assert_eq!(world.requests(Call::DeletePod), 0);
    hold(&world, "labels", "no");
    assert_eq!(
        world.step().await,
        Some(Waiting::OldPodRemoval("web-0".into()))
    );
}
