//! Scaling and replacement of pods: the test bodies that upstream runs for ordered and parallel
//! sets.

use kube_apimachinery::pod::PodPhase;
use statefulset_controller_util::pod::POD_INDEX_LABEL;
use statefulset_controller_util::testing::upstream::set;
use statefulset_pod_control::stateful_set_utils::ordinal;

use super::drivers::{assert_injected, ordinal_of};
use super::fixtures::{Walk, injected};
use super::runs::Run;
use crate::testing::invariants::{self, Invariants};

mod test_stateful_set_control {
    use super::*;

    #[tokio::test]
    async fn create_pods_monotonic() {
        for run in Run::policies() {
            create_pods(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn create_pods_burst() {
        for run in Run::policies() {
            create_pods(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn scales_up_monotonic() {
        for run in Run::policies() {
            scales_up(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn scales_up_burst() {
        for run in Run::policies() {
            scales_up(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn scales_down_monotonic() {
        for run in Run::policies() {
            scales_down(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn scales_down_burst() {
        for run in Run::policies() {
            scales_down(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn replaces_pods_monotonic() {
        for run in Run::policies() {
            replaces_pods(run.stored(set(5)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn replaces_pods_burst() {
        for run in Run::policies() {
            replaces_pods(run.stored(set(5).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn recreates_failed_pod_monotonic() {
        for run in Run::policies() {
            recreates_ended_pod(run.stored(set(3)), "Failed", invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn recreates_failed_pod_burst() {
        for run in Run::policies() {
            let walk = run.stored(set(3).parallel());
            recreates_ended_pod(walk, "Failed", invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn recreates_succeeded_pod_monotonic() {
        for run in Run::policies() {
            recreates_ended_pod(run.stored(set(3)), "Succeeded", invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn recreates_succeeded_pod_burst() {
        for run in Run::policies() {
            let walk = run.stored(set(3).parallel());
            recreates_ended_pod(walk, "Succeeded", invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn recreates_failed_pod_with_delete_failure_monotonic() {
        for run in Run::policies() {
            let walk = run.stored(set(3));
            recreates_ended_pod_after_failure(walk, "Failed", invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn recreates_failed_pod_with_delete_failure_burst() {
        for run in Run::policies() {
            let walk = run.stored(set(3).parallel());
            recreates_ended_pod_after_failure(walk, "Failed", invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn recreates_succeeded_pod_with_delete_failure_monotonic() {
        for run in Run::policies() {
            let walk = run.stored(set(3));
            recreates_ended_pod_after_failure(walk, "Succeeded", invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn recreates_succeeded_pod_with_delete_failure_burst() {
        for run in Run::policies() {
            let walk = run.stored(set(3).parallel());
            recreates_ended_pod_after_failure(walk, "Succeeded", invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn create_pod_failure_monotonic() {
        for run in Run::policies() {
            create_pod_failure(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn create_pod_failure_burst() {
        for run in Run::policies() {
            create_pod_failure(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn update_pod_failure_monotonic() {
        for run in Run::policies() {
            update_pod_failure(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn update_pod_failure_burst() {
        for run in Run::policies() {
            update_pod_failure(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn update_set_status_failure_monotonic() {
        for run in Run::policies() {
            update_set_status_failure(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn update_set_status_failure_burst() {
        for run in Run::policies() {
            update_set_status_failure(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn new_revision_delete_pod_failure_monotonic() {
        for run in Run::policies() {
            new_revision_delete_pod_failure(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn new_revision_delete_pod_failure_burst() {
        for run in Run::policies() {
            new_revision_delete_pod_failure(run.stored(set(3).parallel()), invariants::burst).await;
        }
    }

    #[tokio::test]
    async fn recreates_pvc_for_pending_pod_monotonic() {
        for run in Run::policies() {
            recreates_pvc_for_pending_pod(run.stored(set(3)), invariants::monotonic).await;
        }
    }

    #[tokio::test]
    async fn recreates_pvc_for_pending_pod_burst() {
        for run in Run::policies() {
            let walk = run.stored(set(3).parallel());
            recreates_pvc_for_pending_pod(walk, invariants::burst).await;
        }
    }
}

async fn create_pods(mut walk: Walk, invariants: Invariants) {
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [3, 3, 3]);
    let pods = walk.world.objects.pods_of(&walk.set);
    assert_eq!(pods.len(), 3);
    for pod in pods {
        let index = ordinal_of(&pod).to_string();
        assert_eq!(pod.labels.get(POD_INDEX_LABEL), Some(&*index));
    }
}

async fn scales_up(mut walk: Walk, invariants: Invariants) {
    let mut original = walk.set.clone();
    walk.scale_up(invariants).await.unwrap();
    // The current copy has no status yet.
    original.spec.replicas = 4;
    walk.set = original;
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [4, 4, 4]);
}

async fn scales_down(mut walk: Walk, invariants: Invariants) {
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    walk.change(|set| set.spec.replicas = 0);
    walk.scale_down(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [0, 0, 0]);
    // Upstream doesn't check that no pod is left.
    assert!(walk.pod_names().is_empty());
}

/// Upstream looks the claims up by the volume's name, finds none, and checks nothing. It also stops
/// checking the invariants after the first scale-up.
async fn replaces_pods(mut walk: Walk, invariants: Invariants) {
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.set.status.replicas, 5);
    for claim in walk.world.objects.claims.cache().list() {
        let pod = claim.name.trim_start_matches("datadir-");
        let pod = walk
            .world
            .objects
            .pods
            .cache()
            .get(walk.set.namespace(), pod);
        let pod = pod.expect("each claim belongs to a pod");
        assert!(
            claim
                .owner_references
                .iter()
                .all(|owner| owner.uid != pod.uid)
        );
    }
    assert_eq!(walk.world.objects.claims.cache().len(), 5);
    for pod in [0, 2, 4] {
        let removed = walk
            .world
            .objects
            .pods
            .delete(walk.set.namespace(), &format!("foo-{pod}"));
        removed.unwrap();
    }
    for ordinal in [0, 2, 4] {
        let pods = walk.world.objects.pods_of(&walk.set);
        walk.sync(&pods).await.unwrap();
        walk.reread();
        walk.world
            .objects
            .set_pod_phase(&walk.set, ordinal, "Running");
        let pods = walk.world.objects.pods_of(&walk.set);
        walk.sync(&pods).await.unwrap();
        walk.reread();
        walk.world
            .objects
            .set_pod_ready(&walk.set, ordinal, true, walk.world.now);
    }
    let pods = walk.world.objects.pods_of(&walk.set);
    walk.sync(&pods).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [5, 5, 5]);
    walk.check(invariants).unwrap();
}

/// Runs the first sync, makes one pod terminal and the others pending, and returns the terminal
/// pod's ordinal. Upstream lists pods in any order, so in parallel sets any pod may be the one.
async fn first_pods_with_one_ended(walk: &mut Walk, phase: &str, invariants: Invariants) -> i32 {
    use rand::Rng as _;
    walk.sync(&[]).await.unwrap();
    walk.check(invariants).unwrap();
    assert_eq!(walk.world.objects.delete_pod_tracker.requests(), 0);
    let pods = walk.world.objects.pods_of(&walk.set);
    let ended = ordinal_of(&pods[walk.random.random_range(0..pods.len())]);
    for pod in &pods {
        let ordinal = ordinal_of(pod);
        let phase = if ordinal == ended { phase } else { "Pending" };
        walk.world.objects.set_pod_phase(&walk.set, ordinal, phase);
    }
    ended
}

/// Checks that the terminal pod is deleted and then recreated, with these total deletions.
async fn ended_pod_comes_back(walk: &Walk, ended: i32, deletions: usize, invariants: Invariants) {
    let is_ended = |name: &str| ordinal(name) == Some(ended.into());
    let created = walk.world.objects.create_pod_tracker.requests();
    walk.sync(&walk.world.objects.pods_of(&walk.set))
        .await
        .unwrap();
    walk.check(invariants).unwrap();
    assert_eq!(walk.world.objects.delete_pod_tracker.requests(), deletions);
    assert!(!walk.pod_names().iter().any(|name| is_ended(name)));
    walk.sync(&walk.world.objects.pods_of(&walk.set))
        .await
        .unwrap();
    walk.check(invariants).unwrap();
    assert_eq!(walk.world.objects.delete_pod_tracker.requests(), deletions);
    assert_eq!(
        walk.world.objects.create_pod_tracker.requests(),
        created + 1
    );
    let pods = walk.world.objects.pods_of(&walk.set);
    let again = pods.iter().find(|pod| is_ended(&pod.name)).unwrap();
    assert_eq!(again.phase, PodPhase::None);
}

fn first_creations(walk: &Walk) -> usize {
    if walk.set.spec.allows_burst() { 3 } else { 1 }
}

async fn recreates_ended_pod(mut walk: Walk, phase: &str, invariants: Invariants) {
    let ended = first_pods_with_one_ended(&mut walk, phase, invariants).await;
    let created = walk.world.objects.create_pod_tracker.requests();
    assert_eq!(created, first_creations(&walk));
    ended_pod_comes_back(&walk, ended, 1, invariants).await;
}

async fn recreates_ended_pod_after_failure(mut walk: Walk, phase: &str, invariants: Invariants) {
    let ended = first_pods_with_one_ended(&mut walk, phase, invariants).await;
    let created = walk.world.objects.create_pod_tracker.requests();
    assert_eq!(created, first_creations(&walk));
    walk.world
        .objects
        .delete_pod_tracker
        .fail_after(0, injected);
    let failed = walk.sync(&walk.world.objects.pods_of(&walk.set)).await;
    assert_injected(failed.map(drop));
    walk.check(invariants).unwrap();
    assert_eq!(walk.world.objects.delete_pod_tracker.requests(), 1);
    ended_pod_comes_back(&walk, ended, 2, invariants).await;
}

/// The second creation fails, in parallel sets one of the second batch.
async fn create_pod_failure(mut walk: Walk, invariants: Invariants) {
    walk.world
        .objects
        .create_pod_tracker
        .fail_after(1, injected);
    assert_injected(walk.scale_up(invariants).await);
    walk.reread();
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [3, 3, 3]);
}

/// No pod is updated while pods are created; a pod with a wrong name is, and that update fails.
async fn update_pod_failure(mut walk: Walk, invariants: Invariants) {
    walk.world
        .objects
        .update_pod_tracker
        .fail_after(0, injected);
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [3, 3, 3]);
    let mut pods = walk.world.objects.pods_of(&walk.set);
    assert_eq!(pods.len(), 3);
    let mut renamed = walk
        .world
        .objects
        .pods
        .json(walk.set.namespace(), "foo-0")
        .unwrap();
    renamed["metadata"]["name"] = "goo-0".into();
    pods[0] = walk.world.objects.pods.put(renamed);
    assert_injected(walk.sync(&pods).await.map(drop));
    assert_eq!(walk.world.objects.update_pod_tracker.requests(), 1);
}

/// The second write of a status fails.
async fn update_set_status_failure(mut walk: Walk, invariants: Invariants) {
    walk.world.status.update_tracker.fail_after(1, injected);
    assert_injected(walk.scale_up(invariants).await);
    walk.reread();
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.counts(), [3, 3, 3]);
}

async fn new_revision_delete_pod_failure(mut walk: Walk, invariants: Invariants) {
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    assert_eq!(walk.set.status.replicas, 3);
    let pods = walk.world.objects.pods_of(&walk.set);
    walk.change_image("nginx-new");
    walk.world
        .objects
        .delete_pod_tracker
        .fail_after(0, injected);
    assert_injected(walk.sync(&pods).await.map(drop));
    walk.reread();
    let status = &walk.set.status;
    assert_eq!(status.current_replicas, 3);
    assert_ne!(status.current_revision, status.update_revision);
    walk.check(invariants).unwrap();
    let status = walk.sync(&pods).await.unwrap().status.unwrap();
    assert_eq!(status.current_replicas, 2);
    walk.check(invariants).unwrap();
    // Upstream doesn't check which pod was deleted.
    assert_eq!(walk.pod_names(), ["foo-0", "foo-1"]);
}

async fn recreates_pvc_for_pending_pod(walk: Walk, invariants: Invariants) {
    walk.sync(&[]).await.unwrap();
    walk.check(invariants).unwrap();
    let pods = walk.world.objects.pods_of(&walk.set);
    let claim = format!("datadir-{}", pods[0].name);
    walk.world
        .objects
        .claims
        .delete(walk.set.namespace(), &claim)
        .unwrap();
    walk.world
        .objects
        .set_pod_phase(&walk.set, ordinal_of(&pods[0]), "Pending");
    walk.sync(&walk.world.objects.pods_of(&walk.set))
        .await
        .unwrap();
    walk.check(invariants).unwrap();
    // Upstream's check of ordered sets accepts a missing claim if scaling down deletes it.
    assert!(
        walk.world
            .objects
            .claims
            .cache()
            .get(walk.set.namespace(), &claim)
            .is_some()
    );
}
