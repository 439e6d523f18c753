//! Replacement of pods that block a rollout.

use kube_apimachinery::pod::PodPhase;
use statefulset_opt_ins::{Carrier, Wait};

use super::*;

/// A set that opts in to repair.
fn repaired(set: Builder<StatefulSet>, method: &str) -> Builder<StatefulSet> {
    set.annotation(Carrier::Repair.annotation(), method)
}

fn replaced(pod: &str) -> Option<Waiting> {
    Some(Wait::BlockingPodReplaced(pod.into()).into())
}

/// Acts as the kubelet: pods whose image begins with `bad` can't pull it, others run.
fn run_pods(world: &World) {
    for pod in world.pods() {
        let json = world.pod_json(&pod);
        let image = json["spec"]["containers"][0]["image"].as_str().unwrap();
        if image.starts_with("bad") {
            break_pod(world, &pod.name, "ImagePullBackOff");
        } else {
            world.run(&pod);
        }
    }
}

/// Makes a pod's container wait for a reason.
fn break_pod(world: &World, pod: &str, reason: &str) {
    let container = json!({"name": "main", "state": {"waiting": {"reason": reason}}});
    world.change_pod(pod, |pod| {
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [container]});
    });
}

/// Makes a pod run without being ready since a moment.
fn make_unready(world: &World, pod: &str, since: &str) {
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": since});
    world.change_pod(pod, |pod| {
        pod["status"] = json!({"phase": "Running", "conditions": [ready]});
    });
}

/// Returns the number of deletions and evictions.
fn removals(world: &World) -> usize {
    world.requests(Call::DeletePod)
}

/// Syncs until the set has nothing left to do, or for 60 syncs. Returns the largest number of pods
/// that weren't ready.
async fn sync_long(world: &mut World) -> usize {
    let mut down_max = 0;
    for _ in 0..60 {
        let waiting = world.step().await;
        let ready = world.pods();
        let ready = ready
            .iter()
            .filter(|pod| pod.is_running_and_ready())
            .count();
        let replicas = usize::try_from(world.set.spec.replicas).unwrap();
        down_max = down_max.max(replicas - ready);
        run_pods(world);
        if waiting.is_none() {
            world.step().await;
            break;
        }
    }
    down_max
}

#[tokio::test]
async fn corrected_template_replaces_the_pod_of_the_bad_one() {
    for method in ["evict", "delete"] {
        let mut world = opted_in(&repaired(web(), method));
        world.settle().await;
        world.change_image("bad");
        let down = sync_long(&mut world).await;
        assert_eq!(removals(&world), 1, "the rollout stops at the first pod");
        assert_eq!(world.requests(Call::EvictPod), 0);

        world.change_image("good");
        assert!(sync_long(&mut world).await <= down);
        assert_eq!(world.counts(), Counts::all(3), "{method}");
        let revision = world.set.status.update_revision.clone();
        assert!(world.pods().iter().all(|pod| *pod.revision() == *revision));
        // One for the bad pod, and two for the others.
        assert_eq!(removals(&world), 1 + 3);
        let evictions = usize::from(method == "evict");
        assert_eq!(world.requests(Call::EvictPod), evictions);
    }
}

#[tokio::test]
async fn repair_is_reported() {
    let mut world = opted_in(&repaired(web(), "evict"));
    world.settle().await;
    world.change_image("bad");
    sync_long(&mut world).await;
    let bad = world.set.status.update_revision.clone();
    world.change_image("good");
    world.events();
    assert_eq!(world.step().await, replaced("web-2"));
    let good = world.set.status.update_revision.clone();
    let event = format!(
        "Normal ReplacedBlockingPod Pod web-2 of revision {bad} blocked the rollout to revision \
         {good} and was replaced"
    );
    let deleted = "Normal SuccessfulDelete Delete Pod web-2 in StatefulSet web successful";
    assert_eq!(world.events(), [deleted, &event]);
}

#[tokio::test]
async fn without_an_opt_in_the_pod_of_the_bad_template_blocks() {
    for (set, gates) in [
        (web(), FeatureGates::default().with_opt_ins()),
        (
            repaired(web(), "none"),
            FeatureGates::default().with_opt_ins(),
        ),
        (repaired(web(), "delete"), FeatureGates::default()),
    ] {
        let mut world = with_gates(&set, gates);
        world.settle().await;
        world.change_image("bad");
        sync_long(&mut world).await;
        world.change_image("good");
        sync_long(&mut world).await;
        assert_eq!(removals(&world), 1);
        assert_eq!(world.step().await, not_ready("web-2"));
    }
}

/// The other pods don't exist yet, and wait for the broken one.
#[tokio::test]
async fn first_template_of_a_set_is_corrected() {
    for set in [web(), web().parallel()] {
        let mut world = opted_in(&repaired(set, "delete"));
        world.change_image("bad");
        sync_long(&mut world).await;
        assert_eq!(removals(&world), 0);
        world.change_image("good");
        sync_long(&mut world).await;
        assert_eq!(world.counts(), Counts::all(3));
    }
}

/// An operator deleted such pods in a loop, as long as the image was missing.
#[tokio::test]
async fn image_missing_for_ever_costs_one_removal_for_each_pod_and_revision() {
    for set in [web(), web().parallel()] {
        let mut world = opted_in(&repaired(set, "delete"));
        world.settle().await;
        for round in 1..=3 {
            world.change_image(&format!("bad{round}"));
            sync_long(&mut world).await;
            assert_eq!(removals(&world), round, "round {round}");
            let web_2 = world.pod("web-2");
            assert_eq!(*web_2.revision(), *world.set.status.update_revision);
        }
    }
}

#[tokio::test]
async fn only_a_pod_that_the_update_replaces_is_replaced() {
    let below = repaired(web(), "delete").partition(2);
    for set in [
        below,
        repaired(web(), "delete").on_delete(),
        repaired(web(), "delete").annotation(Carrier::Paused.annotation(), "true"),
    ] {
        let mut world = opted_in(&set);
        world.settle().await;
        break_pod(&world, "web-1", "CrashLoopBackOff");
        world.change_image("good");
        let removed = removals(&world);
        for _ in 0..5 {
            assert_eq!(world.step().await, not_ready("web-1"), "{}", set.text());
        }
        assert_eq!(removals(&world), removed);
    }
}

#[tokio::test]
async fn pod_of_the_update_revision_is_never_replaced() {
    let mut world = opted_in(&repaired(web(), "delete"));
    world.settle().await;
    break_pod(&world, "web-1", "CrashLoopBackOff");
    assert_eq!(world.step().await, not_ready("web-1"));
    assert_eq!(removals(&world), 0);
}

/// The cache may be old: a deletion would take down one more pod.
#[tokio::test]
async fn pod_that_is_ready_meanwhile_is_not_replaced() {
    for method in ["evict", "delete"] {
        let mut world = opted_in(&repaired(web(), method));
        world.settle().await;
        break_pod(&world, "web-1", "CrashLoopBackOff");
        world.change_image("good");
        let seen = world.pods();
        world.run("web-1");
        let outcome = world.sync_pods(&seen).await;
        assert_eq!(outcome.waiting, not_ready("web-1"), "{method}");
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!(removals(&world), 0);
    }
}

#[tokio::test]
async fn terminating_pod_is_not_replaced() {
    let mut world = opted_in(&repaired(web(), "delete"));
    world.settle().await;
    break_pod(&world, "web-1", "CrashLoopBackOff");
    world.change_pod("web-1", |pod| {
        pod["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    });
    world.change_image("good");
    let terminating = Some(Waiting::PodTerminating("web-1".into()));
    assert_eq!(world.step().await, terminating);
    assert_eq!(removals(&world), 0);
}

#[tokio::test]
async fn lowest_pod_that_is_not_ready_is_replaced_first() {
    let mut world = opted_in(&repaired(web(), "delete"));
    world.settle().await;
    for pod in ["web-0", "web-2"] {
        break_pod(&world, pod, "CreateContainerConfigError");
    }
    world.change_image("good");
    assert_eq!(world.step().await, replaced("web-0"));
    let created = Some(Waiting::PodCreated("web-0".into()));
    assert_eq!(world.step().await, created);
    world.run("web-0");
    assert_eq!(world.step().await, replaced("web-2"));
}

#[tokio::test]
async fn pod_without_visible_trouble_is_replaced_after_the_delay() {
    let set = repaired(web(), "delete").annotation(Carrier::RepairAfter.annotation(), "10m");
    let mut world = opted_in(&set);
    world.settle().await;
    make_unready(&world, "web-1", "2026-03-01T11:55:00Z");
    world.change_image("good");
    let outcome = world.sync().await;
    assert_eq!(outcome.waiting, not_ready("web-1"));
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 5 * 60);
    world.now = "2026-03-01T12:05:00Z".parse().unwrap();
    assert_eq!(world.step().await, replaced("web-1"));
}

#[tokio::test]
async fn no_other_pod_is_replaced_while_an_updated_one_is_unavailable() {
    let mut world = opted_in(&repaired(web(), "delete"));
    world.settle().await;
    world.change_image("bad");
    sync_long(&mut world).await;
    break_pod(&world, "web-0", "CrashLoopBackOff");
    for _ in 0..3 {
        assert_eq!(world.step().await, not_ready("web-0"));
    }
    assert_eq!(removals(&world), 1);
}

#[tokio::test]
async fn parallel_set_replaces_pods_that_use_up_the_budget() {
    let gates = FeatureGates::default()
        .with_opt_ins()
        .max_unavailable_stateful_set(true);
    let set = repaired(web().parallel().max_unavailable(2), "delete");
    let mut world = with_gates(&set, gates);
    world.settle().await;
    for pod in ["web-0", "web-1"] {
        break_pod(&world, pod, "CrashLoopBackOff");
    }
    world.change_image("good");
    assert_eq!(world.step().await, replaced("web-1"));
    let down = sync_long(&mut world).await;
    assert!(down <= 2, "{down} pods down");
    assert_eq!(world.counts(), Counts::all(3));
}

#[tokio::test]
async fn refused_eviction_is_tried_again_later() {
    let refusals: [fn() -> ApiError; 3] = [
        || ApiError::api(429, "TooManyRequests", "Cannot evict pod"),
        || ApiError::api(403, "Forbidden", "pods is forbidden"),
        || ApiError::api(500, "", "This pod has more than one PodDisruptionBudget"),
    ];
    for refusal in refusals {
        let mut world = opted_in(&repaired(web(), "evict"));
        world.settle().await;
        break_pod(&world, "web-1", "CrashLoopBackOff");
        world.change_image("good");
        world.fail_with(Call::EvictPod, 0, refusal);
        check_refused(&mut world).await;
    }
}

async fn check_refused(world: &mut World) {
    let outcome = world.sync().await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert!(
        matches!(&outcome.waiting, Some(Waiting::OptIn(Wait::EvictionRefused { pod, .. })) if &**pod == "web-1"),
        "{:?}",
        outcome.waiting
    );
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 30);
    assert_eq!(world.pod("web-1").phase, PodPhase::Pending);
    assert_eq!(world.step().await, replaced("web-1"));
}

/// Defaulting leaves the parameters out if the manifest names the type.
#[tokio::test]
async fn set_without_parameters_of_the_update_is_repaired() {
    let set = web().with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let mut world = opted_in(&repaired(set, "delete"));
    world.settle().await;
    world.change_image("bad");
    sync_long(&mut world).await;
    world.change_image("good");
    sync_long(&mut world).await;
    assert_eq!(world.counts(), Counts::all(3));

    // A lower pod would be created in the current revision again, and again.
    break_pod(&world, "web-0", "CrashLoopBackOff");
    world.change_image("better");
    let removed = removals(&world);
    for _ in 0..5 {
        assert_eq!(world.step().await, not_ready("web-0"));
    }
    assert_eq!(removals(&world), removed);
}
