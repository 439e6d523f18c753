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
        world.put(&change(pod(set, ordinal)));
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
    let world = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.pods(), ["web-0", "web-1"]);
    assert_eq!(
        world.counts(),
        [3, 3, 3, 3, 3],
        "the deleted pod still counts"
    );
    world.put(&pod(&set, 2).terminating());
    let waiting = Waiting::PodTerminating("web-2".into());
    assert_eq!(world.step().await, Some(waiting));
    assert_eq!(world.counts(), [3, 3, 3, 2, 2]);
    world.objects.pods.delete("ns", "web-2").unwrap();
    assert_eq!(world.step().await, scaled_down("web-1"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), [1, 1, 1, 1, 1]);
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
        let world = shrunk(&one(), pods);
        let before = world.pods().len();
        let waiting = world.step().await;
        assert_eq!(waiting, expected);
        let deleted = before - world.pods().len();
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
    let world = shrunk(&set, [FINE, late, late]);
    assert_eq!(world.step().await, blocked("web-2", "web-1"));
    let world = shrunk(&set, [FINE, FINE, late]);
    assert_eq!(world.step().await, scaled_down("web-2"));
}

#[tokio::test]
async fn ready_pod_that_is_not_running_is_not_deleted() {
    let set = one();
    let world = shrunk(&set, [FINE, |pod| pod.phase("Pending")]);
    assert_eq!(world.step().await, not_ready("web-1"));
    assert_eq!(world.pods().len(), 2);
}

#[tokio::test]
async fn unhealthy_wanted_pod_blocks_only_ordered_scale_down() {
    let world = shrunk(&one(), [UNREADY, FINE]);
    assert_eq!(world.step().await, not_ready("web-0"));
    assert_eq!(world.pods().len(), 2);

    let world = shrunk(&one().parallel(), [UNREADY, FINE]);
    world.step().await;
    assert_eq!(world.pods(), ["web-0"]);
}

#[tokio::test]
async fn parallel_set_deletes_all_but_terminating_pods() {
    let set = one().parallel();
    let world = shrunk(&set, [FINE, FINE, TERMINATING, UNREADY, FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-6"));
    assert_eq!(world.pods(), ["web-0", "web-2"]);
    let tracker = &world.objects.delete_pod_tracker;
    assert_eq!(tracker.requests(), 5);
    assert_eq!(tracker.parallel_max(), 2, "6 | 5 4 | 3 (2) 1");
}

#[tokio::test]
async fn failed_deletion_fails_the_sync_and_writes_status() {
    for parallel in [false, true] {
        let set = if parallel { one().parallel() } else { one() };
        let world = shrunk(&set, [FINE, FINE]);
        world.objects.delete_pod_tracker.fail_after(0, boom);
        let outcome = world.sync().await;
        assert_eq!(outcome.error.unwrap().to_string(), "boom");
        assert_eq!(world.counts()[0], 2);
        assert_eq!(
            world.recorder.drain(),
            ["Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: boom"]
        );
    }
}

#[tokio::test]
async fn zero_replicas_delete_every_pod() {
    let world = shrunk(&web().replicas(0), [FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-1"));
    assert_eq!(world.step().await, scaled_down("web-0"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), [0; 5]);
}

#[tokio::test]
async fn ordinals_below_the_start_are_deleted_last() {
    let set = one().start(1);
    let world = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.step().await, scaled_down("web-0"));
    assert_eq!(world.step().await, None);
    assert_eq!(world.pods(), ["web-1"]);
}

#[tokio::test]
async fn condemned_pods_own_claims_before_first_deletion() {
    let set = one().claim_template("data").retention("Delete", "Delete");
    let world = shrunk(&set, [FINE, FINE, FINE]);
    for ordinal in 0..3 {
        let owner = json!(set.build().controller_reference());
        let claim = builders::claim(&set.build(), "data", ordinal).owner(owner);
        world.objects.claims.put(claim.json());
    }
    assert_eq!(world.step().await, scaled_down("web-2"));
    let owner = |ordinal: i32| {
        let claim = format!("data-web-{ordinal}");
        let claim = world.objects.claims.json("ns", &claim).unwrap();
        claim["metadata"]["ownerReferences"][0]["name"].clone()
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
            let world = shrunk(&set, [FINE, FINE]);
            let claim = builders::claim(&set.build(), "data", 1);
            world.objects.claims.put(claim.json());
            match failure {
                "update" => world.objects.update_claim_tracker.fail_after(0, boom),
                // The first lookup is the wanted pod's.
                "look-up" => world.objects.get_claim_tracker.fail_after(1, boom),
                _ => drop(world.objects.sets.remove("ns", "web")),
            }
            let pods = world.objects.pods.cache().list();
            let outcome = world.reconcile(&set.build(), &pods).await;
            let error = outcome.error.unwrap().to_string();
            let expected = match failure {
                "update" => "could not update claim data-web-1 for delete policy ownerRefs: boom",
                "look-up" => {
                    "Could not retrieve claim data-web-1 for web-1 when checking PVC deletion policy: boom"
                }
                _ => {
                    "will not add an owner to claim data-web-1, with which it would be deleted: can't read StatefulSet ns/web: statefulsets.apps \"web\" not found"
                }
            };
            assert_eq!(error, expected);
            assert_eq!(world.pods().len(), 2, "{failure}");
            let stored = world.objects.claims.json("ns", "data-web-1");
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
        let mut claim = builders::claim(&world.set(), "data", ordinal);
        if are_owned {
            claim = claim.owner(pod);
        }
        world.objects.claims.put(claim.json());
    }
}

#[tokio::test]
async fn each_condemned_batch_reads_the_live_set() {
    for (are_owned, looks) in [(false, 6), (true, 3)] {
        let world = shrunk(&deleting().parallel(), [FINE; 8]);
        put_claims(&world, 1..8, are_owned);
        world.step().await;
        assert_eq!(world.pods(), ["web-0"]);
        // Batches of 1, 2 and 4: first their claims, then the pods.
        assert_eq!(world.objects.read_set_tracker.requests(), looks);
    }
}

#[tokio::test]
async fn ordered_set_reads_the_live_set_for_each_condemned_pod() {
    let world = shrunk(&deleting(), [FINE; 3]);
    put_claims(&world, 1..3, false);
    assert_eq!(world.step().await, scaled_down("web-2"));
    assert_eq!(world.objects.read_set_tracker.requests(), 3);
}

#[tokio::test]
async fn failed_live_read_stops_the_sync_before_any_write() {
    for (set, are_owned) in [
        (deleting(), false),
        (deleting(), true),
        (deleting().parallel(), false),
        (deleting().parallel(), true),
    ] {
        let world = shrunk(&set, [FINE; 8]);
        put_claims(&world, 1..8, are_owned);
        world.objects.read_set_tracker.fail_after(0, boom);
        let error = world.sync().await.error.unwrap().to_string();
        assert!(
            error.ends_with("can't read StatefulSet ns/web: boom"),
            "{error}"
        );
        assert_eq!(world.pods().len(), 8);
        assert_eq!(world.objects.update_claim_tracker.requests(), 0);
        assert_eq!(world.objects.delete_pod_tracker.requests(), 0);
    }
}

#[tokio::test]
async fn concurrent_scale_up_keeps_pods_and_claims() {
    for set in [deleting(), deleting().parallel()] {
        let world = shrunk(&set, [FINE; 4]);
        put_claims(&world, 1..4, true);
        let seen = world.set();
        let changed = set.clone().replicas(4).generation(2);
        world.change(&changed);
        let pods = world.objects.pods.cache().list();
        let error = world.reconcile(&seen, &pods).await.error.unwrap();
        let text = "StatefulSet ns/web changed: generation 2 instead of 1";
        assert!(error.to_string().ends_with(text), "{error}");
        assert_eq!(world.pods().len(), 4);
        // The fake's status write stored the old set again.
        world.change(&changed);
        world.step().await;
        let claim = world.objects.claims.json("ns", "data-web-3").unwrap();
        assert!(
            claim["metadata"].get("ownerReferences").is_none(),
            "{claim}"
        );
    }
}
