//! Retention of claims when pods of desired ordinals end or terminate.

use super::*;

fn set() -> Builder<StatefulSet> {
    web().claim_template("data").retention("Delete", "Retain")
}

/// A world with one pod that owns its claim.
fn owning(set: &Builder<StatefulSet>, pod: &Builder<Pod>) -> World {
    let world = world(set);
    world.put_pod(pod);
    own(&world, set, 0);
    world
}

/// Makes a pod the owner of its claim, like a scale-down.
fn own(world: &World, set: &Builder<StatefulSet>, ordinal: i32) {
    let (pod, uid) = (format!("web-{ordinal}"), format!("web-{ordinal}-uid"));
    let owner = builders::owner_reference(("v1", "Pod"), &pod, &uid, Some(true));
    let claim = builders::claim(&set.build(), "data", ordinal).owner(owner);
    world.put_claim(&claim);
}

fn is_owned(world: &World) -> bool {
    is_claim_owned(world, 0)
}

fn is_claim_owned(world: &World, ordinal: i32) -> bool {
    let name = format!("data-web-{ordinal}");
    let claim = world.claim(&name).unwrap();
    claim["metadata"].get("ownerReferences").is_some()
}

/// A scale-down to one pod, reverted halfway: the first pod is missing, and its successors own
/// their claims.
fn scaled_back(set: &Builder<StatefulSet>) -> World {
    let set = set.clone().replicas(4);
    let world = world(&set);
    world.put_pod(&pod(&set, 1));
    world.put_pod(&pod(&set, 2).phase("Failed"));
    world.put_pod(&pod(&set, 3).terminating());
    for ordinal in 1..4 {
        own(&world, &set, ordinal);
    }
    world
}

#[tokio::test]
async fn pods_behind_an_unready_pod_release_their_claims() {
    let mut world = scaled_back(&set());
    world.put_pod(&pod(&set(), 0).unready());
    assert_eq!(world.step().await, not_ready("web-0"));
    for ordinal in 1..4 {
        assert!(!is_claim_owned(&world, ordinal), "{ordinal}");
    }
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn pods_behind_a_failed_batch_release_their_claims() {
    let mut world = scaled_back(&set().parallel());
    world.fail(Call::CreatePod, 0);
    let error = world.sync_error().await;
    assert_eq!(error, INJECTED);
    for ordinal in 1..4 {
        assert!(!is_claim_owned(&world, ordinal), "{ordinal}");
    }
}

#[tokio::test]
async fn failed_release_doesnt_block_other_claims() {
    let mut world = scaled_back(&set());
    world.put_pod(&pod(&set(), 0).unready());
    world.fail(Call::UpdateClaim, 0);
    let error = world.sync_error().await;
    let text = "could not update claim data-web-1 for delete policy ownerRefs: injected failure";
    assert_eq!(error, text);
    let owned: Vec<i32> = (1..4).filter(|it| is_claim_owned(&world, *it)).collect();
    assert_eq!(owned, [1]);
}

#[tokio::test]
async fn retain_policy_releases_condemned_pods_claims_at_once() {
    for (when_scaled, stays_owned) in [("Retain", false), ("Delete", true)] {
        let set = set().retention(when_scaled, "Retain").replicas(1);
        let mut world = world(&set);
        world.put_pod(&pod(&set, 0).unready());
        world.put_pod(&pod(&set, 1).terminating());
        own(&world, &set, 1);
        assert_eq!(world.step().await, not_ready("web-0"));
        assert_eq!(is_claim_owned(&world, 1), stays_owned, "{when_scaled}");
    }
}

#[tokio::test]
async fn terminal_pods_claims_outlive_it() {
    for phase in ["Failed", "Succeeded"] {
        for set in [set(), set().parallel()] {
            let mut world = owning(&set, &pod(&set, 0).phase(phase));
            let waiting = Waiting::PodRemoval("web-0".into());
            assert_eq!(world.step().await, Some(waiting));
            assert!(!world.pod_names().contains(&"web-0".to_owned()));
            assert!(!is_owned(&world), "{phase}");
            assert_eq!(world.requests(Call::ReadSet), 0);
        }
    }
}

#[tokio::test]
async fn pending_pod_releases_its_claims_although_another_one_is_doomed() {
    for set in [set(), set().parallel()] {
        let set = set.claim_template("logs");
        let pod = pod(&set, 0).pending().terminating();
        let mut world = owning(&set, &pod);
        let doomed = builders::claim(&set.build(), "logs", 0).terminating();
        world.put_claim(&doomed);
        let error = world.sync_error().await;
        assert_eq!(error, "pvc logs-web-0 is being deleted");
        assert!(!is_owned(&world));
    }
}

#[tokio::test]
async fn terminal_pod_is_kept_while_it_owns_its_claim() {
    for set in [set(), set().parallel()] {
        let mut world = owning(&set, &pod(&set, 0).phase("Failed"));
        world.fail(Call::UpdateClaim, 0);
        let error = world.sync_error().await;
        let text =
            "could not update claim data-web-0 for delete policy ownerRefs: injected failure";
        assert_eq!(error, text);
        assert!(world.pod_names().contains(&"web-0".to_owned()));
        assert_eq!(world.requests(Call::DeletePod), 0);
    }
}

#[tokio::test]
async fn terminating_desired_pods_claims_outlive_it() {
    for set in [set(), set().parallel()] {
        let mut world = owning(&set, &pod(&set, 0).terminating());
        world.step().await;
        assert!(!is_owned(&world));
        assert_eq!(world.requests(Call::DeletePod), 0);
    }
}

#[tokio::test]
async fn terminal_condemned_pod_keeps_owning_its_claims() {
    let set = set().replicas(0);
    let mut world = owning(&set, &pod(&set, 0).unready().phase("Failed"));
    world.step().await;
    assert!(is_owned(&world));
    assert!(world.pod_names().is_empty());
}
