//! Deletion of condemned pods: order and blocking conditions.

use super::*;

fn scaled_down(pod: &str) -> Option<Waiting> {
    Some(Waiting::ScaledDown(pod.into()))
}

fn blocked(pod: &str, unavailable: &str) -> Option<Waiting> {
    Some(Waiting::ScaleDownBlocked {
        pod: pod.into(),
        unavailable: unavailable.into(),
    })
}

/// A world that wants one pod and has the given pods 0, 1, ….
fn shrunk(
    set: &Builder<StatefulSet>,
    pods: impl IntoIterator<Item = fn(Builder<Pod>) -> Builder<Pod>>,
) -> World {
    let world = world(set);
    for (ordinal, change) in (0..).zip(pods) {
        world.put_pod(&change(pod(set, ordinal)));
    }
    world
}

type Change = fn(Builder<Pod>) -> Builder<Pod>;
const FINE: Change = |pod| pod;
const UNREADY: Change = |pod| pod.unready();
const TERMINATING: Change = |pod| pod.terminating();

fn one() -> Builder<StatefulSet> {
    web().replicas(1)
}

#[tokio::test]
async fn ordered_set_deletes_the_highest_pod_first() {
    let set = one();
    let mut world = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
    assert_eq!(
        world.counts(),
        Counts::all(3),
        "the deleted pod still counts"
    );
    world.put_pod(&pod(&set, 2).terminating());
    let waiting = Waiting::PodTerminating("web-2".into());
    assert_eq!(world.step().await, Some(waiting));
    assert_eq!(world.counts(), Counts::all(3).current(2).updated(2));
    world.remove_pod("web-2");
    assert_eq!(world.step().await, scaled_down("web-1"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(1));
}

#[tokio::test]
async fn unhealthy_pod_is_deleted_only_if_it_is_the_first() {
    for (pods, expected) in [
        (vec![FINE, FINE, UNREADY], scaled_down("web-2")),
        (vec![FINE, UNREADY, FINE], scaled_down("web-2")),
        (vec![FINE, UNREADY, UNREADY], blocked("web-2", "web-1")),
        (
            vec![FINE, FINE, TERMINATING],
            Some(Waiting::PodTerminating("web-2".into())),
        ),
        // A terminating condemned pod is unavailable too.
        (vec![FINE, TERMINATING, UNREADY], blocked("web-2", "web-1")),
        (vec![FINE, TERMINATING, FINE], scaled_down("web-2")),
    ] {
        let mut world = shrunk(&one(), pods);
        let before = world.pod_names().len();
        let waiting = world.step().await;
        assert_eq!(waiting, expected);
        let deleted = before - world.pod_names().len();
        assert_eq!(
            deleted,
            usize::from(matches!(waiting, Some(Waiting::ScaledDown(..))))
        );
    }
}

#[tokio::test]
async fn pod_below_min_ready_seconds_is_unhealthy() {
    let set = one().min_ready_seconds(60);
    let late: Change = |pod| pod.ready_since("2026-03-01T11:59:30Z");
    let mut world = shrunk(&set, [FINE, late, late]);
    assert_eq!(world.step().await, blocked("web-2", "web-1"));
    let mut world = shrunk(&set, [FINE, FINE, late]);
    assert_eq!(world.step().await, scaled_down("web-2"));
}

#[tokio::test]
async fn ready_pod_that_is_not_running_is_not_deleted() {
    let set = one();
    let mut world = shrunk(&set, [FINE, |pod| pod.phase("Pending")]);
    assert_eq!(world.step().await, not_ready("web-1"));
    assert_eq!(world.pod_names().len(), 2);
}

#[tokio::test]
async fn unhealthy_desired_pod_blocks_only_ordered_scale_down() {
    let mut world = shrunk(&one(), [UNREADY, FINE]);
    assert_eq!(world.step().await, not_ready("web-0"));
    assert_eq!(world.pod_names().len(), 2);

    let mut world = shrunk(&one().parallel(), [UNREADY, FINE]);
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0"]);
}

#[tokio::test]
async fn parallel_set_deletes_all_but_terminating_pods() {
    let set = one().parallel();
    let mut world = shrunk(&set, [FINE, FINE, TERMINATING, UNREADY, FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-6"));
    assert_eq!(world.pod_names(), ["web-0", "web-2"]);
    // The batches are 6 | 5 4 | 3 (2) 1.
    assert_eq!(world.parallel_requests(Call::DeletePod), (5, 2));
}

#[tokio::test]
async fn failed_deletion_fails_the_sync_and_writes_status() {
    for parallel in [false, true] {
        let set = if parallel { one().parallel() } else { one() };
        let mut world = shrunk(&set, [FINE, FINE]);
        world.fail(Call::DeletePod, 0);
        let outcome = world.sync().await;
        assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
        assert_eq!(world.set.status.replicas, 2);
        assert_eq!(
            world.events(),
            [
                "Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: injected failure"
            ]
        );
    }
}

#[tokio::test]
async fn zero_replicas_delete_every_pod() {
    let mut world = shrunk(&web().replicas(0), [FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-1"));
    assert_eq!(world.step().await, scaled_down("web-0"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(0));
}

#[tokio::test]
async fn ordinals_below_the_start_are_deleted_last() {
    let set = one().start(1);
    let mut world = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.step().await, scaled_down("web-0"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.pod_names(), ["web-1"]);
}

#[tokio::test]
async fn condemned_pods_own_claims_before_first_deletion() {
    let set = one().claim_template("data").retention("Delete", "Delete");
    let mut world = shrunk(&set, [FINE, FINE, FINE]);
    for ordinal in 0..3 {
        let owner = json!(set.build().controller_reference());
        let claim = builders::claim(&set.build(), "data", ordinal).owner(owner);
        world.put_claim(&claim);
    }
    assert_eq!(world.step().await, scaled_down("web-2"));
    let owner = |ordinal: i32| {
        let owners = world.owners_of_claim(&format!("data-web-{ordinal}"));
        owners[0]["name"].clone()
    };
    assert_eq!([0, 1, 2].map(owner), ["web", "web-1", "web-2"]);
}

#[tokio::test]
async fn pod_without_claim_owner_is_not_deleted() {
    let set = one().claim_template("data").retention("Delete", "Retain");
    for parallel in [false, true] {
        let set = if parallel {
            set.clone().parallel()
        } else {
            set.clone()
        };
        for failure in ["update", "look-up", "live set"] {
            let mut world = shrunk(&set, [FINE, FINE]);
            let claim = builders::claim(&set.build(), "data", 1);
            world.put_claim(&claim);
            match failure {
                "update" => world.fail(Call::UpdateClaim, 0),
                // The first lookup is the desired pod's.
                "look-up" => world.fail(Call::GetClaim, 1),
                _ => drop(world.objects.sets.remove("ns", "web")),
            }
            let expected = match failure {
                "update" => {
                    "could not update claim data-web-1 for delete policy ownerRefs: injected failure"
                }
                "look-up" => {
                    "Could not retrieve claim data-web-1 for web-1 when checking PVC deletion policy: injected failure"
                }
                _ => {
                    "will not add an owner that would cause the deletion of claim data-web-1: \
                     can't read StatefulSet ns/web: statefulsets.apps \"web\" not found"
                }
            };
            assert_eq!(world.sync_error().await, expected);
            assert_eq!(world.pod_names().len(), 2, "{failure}");
            let stored = world.claim("data-web-1");
            assert_eq!(stored, Some(claim.json()), "{failure}");
        }
    }
}

/// A set scaled down to one pod that deletes the other pods' claims with them.
fn deleting() -> Builder<StatefulSet> {
    one().claim_template("data").retention("Delete", "Retain")
}

/// Stores the claims of condemned pods, with or without the pods as owners.
fn put_claims(world: &World, ordinals: std::ops::Range<i32>, are_owned: bool) {
    for ordinal in ordinals {
        let name = format!("web-{ordinal}");
        let uid = format!("{name}-uid");
        let pod = builders::owner_reference(("v1", "Pod"), &name, &uid, Some(true));
        let mut claim = builders::claim(&world.set, "data", ordinal);
        if are_owned {
            claim = claim.owner(pod);
        }
        world.put_claim(&claim);
    }
}

#[tokio::test]
async fn each_condemned_batch_reads_the_live_set() {
    for (are_owned, looks) in [(false, 6), (true, 3)] {
        let mut world = shrunk(&deleting().parallel(), [FINE; 8]);
        put_claims(&world, 1..8, are_owned);
        world.step().await;
        assert_eq!(world.pod_names(), ["web-0"]);
        // Batches of 1, 2 and 4: first their claims, then the pods.
        assert_eq!(world.requests(Call::ReadSet), looks);
    }
}

#[tokio::test]
async fn ordered_set_reads_the_live_set_for_each_condemned_pod() {
    let mut world = shrunk(&deleting(), [FINE; 3]);
    put_claims(&world, 1..3, false);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.requests(Call::ReadSet), 3);
}

#[tokio::test]
async fn failed_live_read_stops_the_sync_before_any_write() {
    for (set, are_owned) in [
        (deleting(), false),
        (deleting(), true),
        (deleting().parallel(), false),
        (deleting().parallel(), true),
    ] {
        let mut world = shrunk(&set, [FINE; 8]);
        put_claims(&world, 1..8, are_owned);
        world.fail(Call::ReadSet, 0);
        let error = world.sync_error().await;
        assert!(
            error.ends_with("can't read StatefulSet ns/web: injected failure"),
            "{error}"
        );
        assert_eq!(world.pod_names().len(), 8);
        assert_eq!(world.requests(Call::UpdateClaim), 0);
        assert_eq!(world.requests(Call::DeletePod), 0);
    }
}

#[tokio::test]
async fn concurrent_scale_up_keeps_pods_and_claims() {
    for set in [deleting(), deleting().parallel()] {
        let mut world = shrunk(&set, [FINE; 4]);
        put_claims(&world, 1..4, true);
        let seen = world.set.clone();
        let changed = set.clone().replicas(4).generation(2);
        world.apply(&changed);
        world.set = seen;
        let error = world.sync_error().await;
        let text = "StatefulSet ns/web changed: generation 2 instead of 1";
        assert!(error.ends_with(text), "{error}");
        assert_eq!(world.pod_names().len(), 4);
        // The fake's status write stored the old set again.
        world.apply(&changed);
        world.step().await;
        assert_eq!(world.owners_of_claim("data-web-3"), [Value::Null; 0]);
    }
}
