//! Creation of pods in order or in batches, and repairs of existing pods.

use super::*;

fn created(pod: &str) -> Option<Waiting> {
    Some(Waiting::PodCreated(pod.into()))
}

#[tokio::test]
async fn ordered_set_creates_one_pod_at_a_time() {
    let set = web();
    let mut world = world(&set);
    for name in ["web-0", "web-1", "web-2"] {
        assert_eq!(world.step().await, created(name));
        assert_eq!(world.pod_revision(name), revision_name(&set));
        world.set_phase(name, "Pending");
        assert_eq!(world.step().await, not_ready(name));
        world.run(name);
    }
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(3));
    assert_eq!(world.set.status.collision_count, Some(0));
    let writes = world.requests(Call::UpdateStatus);
    assert_eq!(world.step().await, None);
    assert_eq!(world.requests(Call::UpdateStatus), writes);
}

#[tokio::test]
async fn new_pod_is_not_counted() {
    let mut world = world(&web());
    world.step().await;
    assert_eq!(world.counts(), Counts::all(0));
    let status = &world.set.status;
    assert_eq!(status.observed_generation, 1);
    assert_eq!(*status.current_revision, *revision_name(&web()));
}

#[tokio::test]
async fn ordered_set_waits_for_available_predecessor() {
    let set = web().min_ready_seconds(60);
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).ready_since("2026-03-01T11:59:30Z"));
    let pod = "web-0".into();
    assert_eq!(world.step().await, Some(Waiting::PodNotAvailable(pod)));
    assert_eq!(world.counts(), Counts::all(1).available(0));
    world.now = "2026-03-01T12:00:30Z".parse().unwrap();
    assert_eq!(world.step().await, created("web-1"));
}

#[tokio::test]
async fn ordered_set_waits_for_terminating_predecessor() {
    let set = web();
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).terminating());
    let pod = "web-0".into();
    assert_eq!(world.step().await, Some(Waiting::PodTerminating(pod)));
    assert_eq!(world.pod_names(), ["web-0"]);
}

#[tokio::test]
async fn missing_pod_is_created_before_its_successors() {
    let set = web();
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0));
    world.put_pod(&pod(&set, 2).unready());
    assert_eq!(world.step().await, created("web-1"));
}

#[tokio::test]
async fn parallel_set_creates_all_pods_at_once() {
    let set = web().replicas(8).parallel();
    let mut world = world(&set);
    world.step().await;
    assert_eq!(world.pod_names().len(), 8);
    assert_eq!(world.parallel_requests(Call::CreatePod), (8, 4));
    assert_eq!(world.counts(), Counts::all(0));
}

#[tokio::test]
async fn existing_pods_count_in_creation_batches() {
    let set = web().replicas(7).parallel();
    let mut world = world(&set);
    for ordinal in [0, 3, 4, 5] {
        world.put_pod(&pod(&set, ordinal));
    }
    world.step().await;
    // Of the batches 0 | 1 2 | 3 4 5 6, two and one pods are missing.
    assert_eq!(world.parallel_requests(Call::CreatePod), (3, 2));
}

#[tokio::test]
async fn failed_creation_stops_after_its_batch() {
    let set = web().replicas(15).parallel();
    let mut world = world(&set);
    world.fail(Call::CreatePod, 1);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert!(outcome.status.is_some());
    assert_eq!(world.requests(Call::CreatePod), 3);
    assert_eq!(world.pod_names().len(), 2);
    assert_eq!(world.requests(Call::UpdateStatus), 1);
}

#[tokio::test]
async fn terminal_pods_are_deleted_and_then_recreated() {
    for phase in ["Failed", "Succeeded"] {
        let set = web();
        let mut world = world(&set);
        world.put_pod(&pod(&set, 0).phase(phase));
        let waiting = Waiting::PodRemoval("web-0".into());
        assert_eq!(world.step().await, Some(waiting));
        assert!(world.pod_names().is_empty());
        assert_eq!(
            world.events(),
            ["Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful"]
        );
        assert_eq!(world.set.status.replicas, 1, "the deleted pod still counts");
        assert_eq!(world.step().await, created("web-0"));
    }
}

#[tokio::test]
async fn terminating_terminal_pod_is_not_deleted_again() {
    let set = web();
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).phase("Failed").terminating());
    let waiting = Waiting::PodRemoval("web-0".into());
    assert_eq!(world.step().await, Some(waiting));
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn parallel_set_creates_pods_despite_a_terminal_pod() {
    let set = web().parallel();
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).phase("Failed"));
    let waiting = Waiting::PodRemoval("web-0".into());
    assert_eq!(world.step().await, Some(waiting));
    assert_eq!(world.pod_names(), ["web-1", "web-2"]);
}

#[tokio::test]
async fn stale_claim_blocks_pod_creation() {
    for parallel in [false, true] {
        let set = web().claim_template("data").retention("Delete", "Retain");
        let set = if parallel { set.parallel() } else { set };
        let mut world = world(&set);
        let old = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "old"});
        let claim = builders::claim(&set.build(), "data", 0).owner(old);
        world.put_claim(&claim);
        let waiting = Waiting::StaleClaim {
            pod: "web-0".into(),
            claim: "data-web-0".into(),
        };
        assert_eq!(world.step().await, Some(waiting));
        let others: &[&str] = if parallel { &["web-1", "web-2"] } else { &[] };
        assert_eq!(world.pod_names(), others);
        assert_eq!(world.claim("data-web-0"), Some(claim.json()));
    }
}

#[tokio::test]
async fn failed_stale_claim_lookup_fails_the_sync() {
    let set = web().claim_template("data").retention("Delete", "Retain");
    let mut world = world(&set);
    world.fail(Call::GetClaim, 0);
    let outcome = world.sync().await;
    assert_eq!(outcome.error.unwrap().to_string(), INJECTED);
    assert!(world.pod_names().is_empty());
}

#[tokio::test]
async fn pending_pod_gets_missing_claims_even_if_terminating() {
    for terminating in [false, true] {
        let set = web().claim_template("data");
        let mut world = world(&set);
        let pending = pod(&set, 0).pending();
        world.put_pod(&if terminating {
            pending.terminating()
        } else {
            pending
        });
        world.step().await;
        assert!(world.claim("data-web-0").is_some());
    }
    let set = web().claim_template("data");
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).unready());
    assert_eq!(world.step().await, not_ready("web-0"));
    assert_eq!(world.claim("data-web-0"), None);
}

#[tokio::test]
async fn ordered_repair_stops_at_first_unready_pod() {
    let name_label = "statefulset.kubernetes.io/pod-name";
    for parallel in [false, true] {
        let set = if parallel { web().parallel() } else { web() };
        let mut world = world(&set);
        for (ordinal, ready) in [(0, true), (1, false), (2, true)] {
            let pod = pod(&set, ordinal).without_label(name_label);
            world.put_pod(&if ready { pod } else { pod.unready() });
        }
        let pod = "web-1".into();
        let waiting = if parallel {
            Some(Waiting::UpdatedPodUnavailable(pod))
        } else {
            Some(Waiting::PodNotReady(pod))
        };
        assert_eq!(world.step().await, waiting);
        let repaired = |name: &str| {
            let pod = world.pod(name);
            pod.labels.get(name_label) == Some(name)
        };
        let repairs = ["web-0", "web-1", "web-2"].map(repaired);
        assert_eq!(repairs, [true, parallel, parallel]);
    }
}

#[tokio::test]
async fn failed_claim_lookup_repairs_nothing() {
    let set = web().replicas(1).claim_template("data");
    let set = set.retention("Retain", "Delete");
    let mut world = world(&set);
    let claim = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]);
    world.put_pod(&pod(&set, 0).with("spec.volumes", claim));
    let claim = builders::claim(&set.build(), "data", 0);
    world.put_claim(&claim);
    world.fail(Call::GetClaim, 0);
    assert_eq!(world.step().await, None);
    assert_eq!(world.requests(Call::UpdateClaim), 0);
    assert_eq!(world.requests(Call::UpdatePod), 0);
}

#[tokio::test]
async fn pod_without_claim_volume_gets_it() {
    let set = web().replicas(1).claim_template("data");
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0).with("spec.volumes", json!([])));
    assert_eq!(world.step().await, None);
    let stored = world.pod_json("web-0");
    let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}});
    assert_eq!(stored["spec"]["volumes"], json!([claim]));
    assert!(world.claim("data-web-0").is_some());
}

#[tokio::test]
async fn claims_get_the_owners_of_the_policy() {
    let set = web().replicas(1).claim_template("data");
    let set = set.retention("Retain", "Delete");
    let mut world = world(&set);
    world.put_pod(&pod(&set, 0));
    let claim = builders::claim(&set.build(), "data", 0);
    world.put_claim(&claim);
    assert_eq!(world.step().await, None);
    let owner = set.build().controller_reference();
    let stored = world.claim("data-web-0").unwrap();
    assert_eq!(stored["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(
        world.events(),
        ["Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"]
    );
    assert_eq!(world.step().await, None);
    assert!(world.recorder.is_empty());
}

#[tokio::test]
async fn ordinals_begin_at_the_start() {
    let mut world = world(&web().replicas(2).start(7));
    world.settle().await;
    assert_eq!(world.pod_names(), ["web-7", "web-8"]);
}

#[tokio::test]
async fn sync_creates_at_most_500_pods_and_updates_none() {
    let mut world = world(&web().replicas(501).parallel());
    assert_eq!(world.step().await, created("web-499"));
    assert_eq!(world.requests(Call::CreatePod), 500);
    assert_eq!(world.requests(Call::DeletePod), 0);
}
