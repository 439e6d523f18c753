//! Pods that are no longer wanted: in what order they go, and what holds them up.

use super::*;

fn scaled_down(pod: &str) -> Option<Waiting> {
    Some(Waiting::ScaledDown { pod: pod.into() })
}

fn blocked(pod: &str, unavailable: &str) -> Option<Waiting> {
    Some(Waiting::ScaleDownBlocked {
        pod: pod.into(),
        unavailable: unavailable.into(),
    })
}

/// One pod is wanted; the pods 0, 1, … are there as told.
fn shrunk(
    set: &Builder<StatefulSet>,
    pods: impl IntoIterator<Item = fn(Builder<Pod>) -> Builder<Pod>>,
) -> Cluster {
    let cluster = cluster(set);
    for (ordinal, change) in (0..).zip(pods) {
        cluster.put(&change(pod(set, ordinal)));
    }
    cluster
}

type Change = fn(Builder<Pod>) -> Builder<Pod>;
const FINE: Change = |pod| pod;
const UNREADY: Change = |pod| pod.unready();
const TERMINATING: Change = |pod| pod.terminating();

fn one() -> Builder<StatefulSet> {
    web().replicas(1)
}

#[tokio::test]
async fn in_order_the_highest_goes_first_and_is_awaited() {
    let set = one();
    let cluster = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(cluster.step().await, scaled_down("web-2"));
    assert_eq!(cluster.pods(), ["web-0", "web-1"]);
    assert_eq!(cluster.counts(), [3, 3, 3, 3, 3], "it still counts");
    cluster.put(&pod(&set, 2).terminating());
    let waiting = Waiting::PodTerminating {
        pod: "web-2".into(),
    };
    assert_eq!(cluster.step().await, Some(waiting));
    assert_eq!(cluster.counts(), [3, 3, 3, 2, 2]);
    cluster.objects.pods.delete("ns", "web-2").unwrap();
    assert_eq!(cluster.step().await, scaled_down("web-1"));
    assert_eq!(cluster.step().await, None);
    assert_eq!(cluster.counts(), [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn an_unhealthy_pod_goes_only_if_it_is_the_first_of_all() {
    for (pods, expected) in [
        (vec![FINE, FINE, UNREADY], scaled_down("web-2")),
        (vec![FINE, UNREADY, FINE], scaled_down("web-2")),
        (vec![FINE, UNREADY, UNREADY], blocked("web-2", "web-1")),
        (
            vec![FINE, FINE, TERMINATING],
            Some(Waiting::PodTerminating {
                pod: "web-2".into(),
            }),
        ),
        // A condemned pod on its way out is unavailable, too.
        (vec![FINE, TERMINATING, UNREADY], blocked("web-2", "web-1")),
        (vec![FINE, TERMINATING, FINE], scaled_down("web-2")),
    ] {
        let cluster = shrunk(&one(), pods);
        let before = cluster.pods().len();
        let waiting = cluster.step().await;
        assert_eq!(waiting, expected);
        let deleted = before - cluster.pods().len();
        assert_eq!(
            deleted,
            usize::from(matches!(waiting, Some(Waiting::ScaledDown { .. })))
        );
    }
}

#[tokio::test]
async fn a_pod_that_isnt_available_long_enough_is_unhealthy() {
    let set = one().min_ready_seconds(60);
    let late: Change = |pod| pod.ready_since("2026-03-01T11:59:30Z");
    let cluster = shrunk(&set, [FINE, late, late]);
    assert_eq!(cluster.step().await, blocked("web-2", "web-1"));
    let cluster = shrunk(&set, [FINE, FINE, late]);
    assert_eq!(cluster.step().await, scaled_down("web-2"));
}

#[tokio::test]
async fn a_pod_that_is_ready_without_running_stays_although_none_is_unavailable() {
    let set = one();
    let cluster = shrunk(&set, [FINE, |pod| pod.phase("Pending")]);
    assert_eq!(cluster.step().await, not_ready("web-1"));
    assert_eq!(cluster.pods().len(), 2);
}

#[tokio::test]
async fn an_unhealthy_wanted_pod_holds_up_the_scaling_in_order_but_not_in_batches() {
    let cluster = shrunk(&one(), [UNREADY, FINE]);
    assert_eq!(cluster.step().await, not_ready("web-0"));
    assert_eq!(cluster.pods().len(), 2);

    let cluster = shrunk(&one().parallel(), [UNREADY, FINE]);
    cluster.step().await;
    assert_eq!(cluster.pods(), ["web-0"]);
}

#[tokio::test]
async fn in_batches_all_go_at_once_but_those_that_go_already() {
    let set = one().parallel();
    let cluster = shrunk(&set, [FINE, FINE, TERMINATING, UNREADY, FINE, FINE, FINE]);
    assert_eq!(cluster.step().await, scaled_down("web-6"));
    assert_eq!(cluster.pods(), ["web-0", "web-2"]);
    let tracker = &cluster.objects.delete_pod_tracker;
    assert_eq!(tracker.requests(), 5);
    assert_eq!(tracker.parallel_max(), 2, "6 | 5 4 | 3 (2) 1");
}

#[tokio::test]
async fn a_failed_deletion_fails_the_sync_with_its_status_written() {
    for parallel in [false, true] {
        let set = if parallel { one().parallel() } else { one() };
        let cluster = shrunk(&set, [FINE, FINE]);
        cluster.objects.delete_pod_tracker.fail_after(0, boom);
        let outcome = cluster.sync().await;
        assert_eq!(outcome.error.unwrap().to_string(), "boom");
        assert_eq!(cluster.counts()[0], 2);
        assert_eq!(
            cluster.recorder.drain(),
            ["Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: boom"]
        );
    }
}

#[tokio::test]
async fn nothing_is_wanted_of_a_set_of_none() {
    let cluster = shrunk(&web().replicas(0), [FINE, FINE]);
    assert_eq!(cluster.step().await, scaled_down("web-1"));
    assert_eq!(cluster.step().await, scaled_down("web-0"));
    assert_eq!(cluster.step().await, None);
    assert_eq!(cluster.counts(), [0; 5]);
}

#[tokio::test]
async fn ordinals_below_a_raised_start_go_last() {
    let set = one().start(1);
    let cluster = shrunk(&set, [FINE, FINE, FINE]);
    assert_eq!(cluster.step().await, scaled_down("web-2"));
    assert_eq!(cluster.step().await, scaled_down("web-0"));
    assert_eq!(cluster.step().await, None);
    assert_eq!(cluster.pods(), ["web-1"]);
}

#[tokio::test]
async fn claims_are_given_to_all_condemned_pods_before_the_first_goes() {
    let set = one().claim_template("data").retention("Delete", "Delete");
    let cluster = shrunk(&set, [FINE, FINE, FINE]);
    for ordinal in 0..3 {
        let owner = json!(set.build().controller_reference());
        let claim = builders::claim(&set.build(), "data", ordinal).owner(owner);
        cluster.objects.claims.put(claim.json());
    }
    assert_eq!(cluster.step().await, scaled_down("web-2"));
    let owner = |ordinal: i32| {
        let claim = format!("data-web-{ordinal}");
        let claim = cluster.objects.claims.json("ns", &claim).unwrap();
        claim["metadata"]["ownerReferences"][0]["name"].clone()
    };
    assert_eq!([0, 1, 2].map(owner), ["web", "web-1", "web-2"]);
}

#[tokio::test]
async fn no_pod_goes_whose_claims_didnt_get_their_owner() {
    let set = one().claim_template("data").retention("Delete", "Retain");
    for parallel in [false, true] {
        let set = if parallel {
            set.clone().parallel()
        } else {
            set.clone()
        };
        for failure in ["update", "look-up", "live set"] {
            let cluster = shrunk(&set, [FINE, FINE]);
            let claim = builders::claim(&set.build(), "data", 1);
            cluster.objects.claims.put(claim.json());
            match failure {
                "update" => cluster.objects.update_claim_tracker.fail_after(0, boom),
                // The first look-up is that of the wanted pod.
                "look-up" => cluster.objects.get_claim_tracker.fail_after(1, boom),
                _ => drop(cluster.objects.sets.remove("ns", "web")),
            }
            let pods = cluster.objects.pods.cache().list();
            let outcome = cluster.reconcile(&set.build(), &pods).await;
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
            assert_eq!(cluster.pods().len(), 2, "{failure}");
            let stored = cluster.objects.claims.json("ns", "data-web-1");
            assert_eq!(stored, Some(claim.json()), "{failure}");
        }
    }
}

/// A set that goes down to one pod, deleting the claims of the others with them.
fn deleting() -> Builder<StatefulSet> {
    one().claim_template("data").retention("Delete", "Retain")
}

/// Stores the claims of condemned pods, which own them already or don't yet.
fn put_claims(cluster: &Cluster, ordinals: std::ops::Range<i32>, are_owned: bool) {
    for ordinal in ordinals {
        let name = format!("web-{ordinal}");
        let uid = format!("{name}-uid");
        let pod = builders::owner_reference(("v1", "Pod"), &name, &uid, Some(true));
        let mut claim = builders::claim(&cluster.set(), "data", ordinal);
        if are_owned {
            claim = claim.owner(pod);
        }
        cluster.objects.claims.put(claim.json());
    }
}

#[tokio::test]
async fn every_batch_of_condemned_pods_has_its_own_look() {
    for (are_owned, looks) in [(false, 6), (true, 3)] {
        let cluster = shrunk(&deleting().parallel(), [FINE; 8]);
        put_claims(&cluster, 1..8, are_owned);
        cluster.step().await;
        assert_eq!(cluster.pods(), ["web-0"]);
        // Batches of 1, 2 and 4: their claims, then they themselves.
        assert_eq!(cluster.objects.read_set_tracker.requests(), looks);
    }
}

#[tokio::test]
async fn in_order_every_condemned_pod_has_its_own_look() {
    let cluster = shrunk(&deleting(), [FINE; 3]);
    put_claims(&cluster, 1..3, false);
    assert_eq!(cluster.step().await, scaled_down("web-2"));
    assert_eq!(cluster.objects.read_set_tracker.requests(), 3);
}

#[tokio::test]
async fn a_failed_look_ends_the_sync_before_any_claim_is_lost() {
    for (set, are_owned) in [
        (deleting(), false),
        (deleting(), true),
        (deleting().parallel(), false),
        (deleting().parallel(), true),
    ] {
        let cluster = shrunk(&set, [FINE; 8]);
        put_claims(&cluster, 1..8, are_owned);
        cluster.objects.read_set_tracker.fail_after(0, boom);
        let error = cluster.sync().await.error.unwrap().to_string();
        assert!(
            error.ends_with("can't read StatefulSet ns/web: boom"),
            "{error}"
        );
        assert_eq!(cluster.pods().len(), 8);
        assert_eq!(cluster.objects.update_claim_tracker.requests(), 0);
        assert_eq!(cluster.objects.delete_pod_tracker.requests(), 0);
    }
}

#[tokio::test]
async fn a_set_scaled_up_meanwhile_keeps_its_pods_and_claims() {
    for set in [deleting(), deleting().parallel()] {
        let cluster = shrunk(&set, [FINE; 4]);
        put_claims(&cluster, 1..4, true);
        let seen = cluster.set();
        let changed = set.clone().replicas(4).generation(2);
        cluster.change(&changed);
        let pods = cluster.objects.pods.cache().list();
        let error = cluster.reconcile(&seen, &pods).await.error.unwrap();
        let text = "StatefulSet ns/web changed: generation 2 instead of 1";
        assert!(error.to_string().ends_with(text), "{error}");
        assert_eq!(cluster.pods().len(), 4);
        // The fake's status write has stored the old set again.
        cluster.change(&changed);
        cluster.step().await;
        let claim = cluster.objects.claims.json("ns", "data-web-3").unwrap();
        assert!(
            claim["metadata"].get("ownerReferences").is_none(),
            "{claim}"
        );
    }
}
