//! Template updates and rollbacks, and the remaining revisions.

use kube_apimachinery::pod::PodPhase;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::{claim_pod_name, set};
use statefulset_history::{apply_revision, sort_controller_revisions};
use statefulset_pod_control::stateful_set_utils::ordinal;
use std::sync::Arc;

use super::drivers::assert_injected;
use super::fixtures::{FOO_REVISION, Walk, injected};
use super::runs::Run;
use crate::stateful_set_control::StatefulSetControl as _;
use crate::testing::invariants::{self, Invariants};

/// Returns the invariants of the set that hold in every state.
fn invariants_of(set: &StatefulSet) -> Invariants {
    if set.spec.allows_burst() {
        invariants::burst
    } else {
        invariants::monotonic
    }
}

/// Scales the set up, then changes its image to `foo` and its number of replicas.
async fn bring_up_and_change(walk: &mut Walk, replicas: i32) {
    let invariants = invariants_of(&walk.set);
    walk.scale_up(invariants).await.unwrap();
    walk.reread();
    walk.set.spec.replicas = replicas;
    walk.change_image("foo");
}

/// Returns the images of some pods of the old template, followed by some of the new one.
fn images(old: usize, new: usize) -> Vec<&'static str> {
    [vec!["nginx"; old], vec!["foo"; new]].concat()
}

fn revisions(walk: &Walk) -> Vec<Arc<ControllerRevision>> {
    let mut revisions = walk.world.control.list_revisions(&walk.set).unwrap();
    sort_controller_revisions(&mut revisions);
    revisions
}

/// Changes the image and the number of replicas, and waits for the update, which needs this number
/// of deletions.
async fn rolling_update(set: Builder<StatefulSet>, replicas: i32, deletions: usize) {
    for run in Run::walks() {
        let mut walk = run.stored(set.clone());
        bring_up_and_change(&mut walk, replicas).await;
        walk.update().await.unwrap();
        assert_eq!(walk.images(), images(0, usize::try_from(replicas).unwrap()));
        assert_eq!(walk.world.objects.delete_pod_tracker.requests(), deletions);
        // Upstream doesn't check the status.
        walk.reread();
        let status = &walk.set.status;
        assert_eq!(walk.counts(), [replicas; 3]);
        assert_eq!(
            [status.available_replicas, status.current_replicas],
            [replicas; 2]
        );
        assert_eq!(&*status.current_revision, FOO_REVISION);
        assert_eq!(&*status.update_revision, FOO_REVISION);
        assert_eq!(status.collision_count, Some(0));
        assert_eq!(walk.world.objects.update_pod_tracker.requests(), 0);
    }
}

mod test_stateful_set_control_rolling_update {
    use super::*;

    #[tokio::test]
    async fn monotonic_image_update() {
        rolling_update(set(3), 3, 3).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_up() {
        rolling_update(set(3), 5, 3).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_down() {
        rolling_update(set(5), 3, 5).await;
    }

    #[tokio::test]
    async fn burst_image_update() {
        rolling_update(set(3).parallel(), 3, 3).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_up() {
        rolling_update(set(3).parallel(), 5, 3).await;
    }

    mod burst_image_update_and_scale_down {
        use super::*;

        /// Without a `rollingUpdate`, which an API server would default, the status decides how
        /// many pods get the old revision. The first sync counted the pods that scaling removes, so
        /// the next one creates pod 2 with the old revision and deletes it immediately.
        #[tokio::test]
        async fn as_upstream() {
            rolling_update(set(5).parallel(), 3, 6).await;
        }

        #[tokio::test]
        async fn each_old_pod_is_deleted_once_where_there_is_a_partition() {
            rolling_update(set(5).parallel().partition(0), 3, 5).await;
        }
    }
}

/// Fails if a pod of the set owns a claim.
#[track_caller]
fn assert_no_claim_of_a_pod(walk: &Walk) {
    for claim in walk.world.objects.claims.cache().list() {
        let owners = &claim.owner_references;
        assert!(
            !owners.iter().any(|owner| owner.name.starts_with("foo-")),
            "{}",
            claim.name
        );
    }
}

/// Fails unless the claims owned by a pod are exactly those of the pods that scaling removed, each
/// with its pod, or none if the policy retains them.
#[track_caller]
fn assert_claims_go_with_scaled_pods(walk: &Walk) {
    let set = &walk.set;
    let delete = set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete;
    for claim in walk.world.objects.claims.cache().list() {
        let pod = claim_pod_name(set, &claim.name).expect("each claim is a pod's");
        let scaled = ordinal(pod).is_some_and(|ordinal| ordinal.index_in(set).is_none());
        let names = claim.owner_references.iter().map(|owner| &*owner.name);
        let pods: Vec<&str> = names.filter(|name| name.starts_with("foo-")).collect();
        let wanted = (delete && scaled).then_some(pod);
        assert_eq!(pods, Vec::from_iter(wanted), "{}", claim.name);
    }
}

/// Removes the claims that a pod of the set owns, as if all those pods were gone.
fn remove_claims_of_pods(walk: &Walk) {
    for claim in walk.world.objects.claims.cache().list() {
        if claim
            .owner_references
            .iter()
            .any(|owner| owner.name.starts_with("foo-"))
        {
            walk.world
                .objects
                .claims
                .delete(&claim.namespace, &claim.name)
                .unwrap();
        }
    }
}

/// Changes the image and the number of replicas. Existing pods keep their template until they are
/// recreated.
///
/// About the claims, upstream checks only that no pod owns one after those claims are removed,
/// which can't fail.
async fn on_delete_update(set: Builder<StatefulSet>, replicas: i32, old: usize, new: usize) {
    for run in Run::policies() {
        let mut walk = run.stored(set.clone().on_delete());
        let invariants = invariants_of(&walk.set);
        bring_up_and_change(&mut walk, replicas).await;
        let most = walk.claim_names().len().max(old + new);
        walk.update().await.unwrap();
        walk.check(invariants::update).unwrap();
        assert_eq!(walk.claim_names().len(), most);
        assert_claims_go_with_scaled_pods(&walk);
        remove_claims_of_pods(&walk);
        walk.reread();
        assert_eq!(walk.images(), images(old, new));
        assert_no_claim_of_a_pod(&walk);

        walk.change(|set| set.spec.replicas = 0);
        walk.scale_down(invariants).await.unwrap();
        walk.reread();
        assert!(walk.pod_names().is_empty());
        assert_no_claim_of_a_pod(&walk);
        walk.change(|set| set.spec.replicas = replicas);
        walk.scale_up(invariants).await.unwrap();
        walk.reread();
        assert_eq!(walk.images(), images(0, old + new));
    }
}

mod test_stateful_set_control_on_delete_update {
    use super::*;

    #[tokio::test]
    async fn monotonic_image_update() {
        on_delete_update(set(3), 3, 3, 0).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_up() {
        on_delete_update(set(3), 5, 3, 2).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_down() {
        on_delete_update(set(5), 3, 3, 0).await;
    }

    #[tokio::test]
    async fn burst_image_update() {
        on_delete_update(set(3).parallel(), 3, 3, 0).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_up() {
        on_delete_update(set(3).parallel(), 5, 3, 2).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_down() {
        on_delete_update(set(5).parallel(), 3, 3, 0).await;
    }
}

/// Changes the image and the number of replicas of a set whose partition keeps the two lowest pods.
async fn partitioned_update(set: Builder<StatefulSet>, replicas: i32, new: usize) {
    for run in Run::policies() {
        let mut walk = run.stored(set.clone().partition(2));
        bring_up_and_change(&mut walk, replicas).await;
        walk.update().await.unwrap();
        assert_eq!(walk.images(), images(2, new));
    }
}

mod test_stateful_set_control_rolling_update_with_partition {
    use super::*;

    #[tokio::test]
    async fn monotonic_image_update() {
        partitioned_update(set(3), 3, 1).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_up() {
        partitioned_update(set(3), 5, 3).await;
    }

    #[tokio::test]
    async fn burst_image_update() {
        partitioned_update(set(3).parallel(), 3, 1).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_up() {
        partitioned_update(set(3).parallel(), 5, 3).await;
    }
}

/// Each update stops at its first status write, which fails. Upstream doesn't check the result of
/// the updates, so it would not notice a success, and requires only a bound.
#[tokio::test]
async fn test_stateful_set_honor_revision_history_limit() {
    for run in Run::policies() {
        let mut walk = run.stored(set(3));
        walk.scale_up(invariants::monotonic).await.unwrap();
        walk.reread();
        for number in 0..7 {
            walk.change_image(&format!("foo-{number}"));
            walk.world.status.update_tracker.fail_after(0, injected);
            assert_injected(walk.update().await);
            walk.reread();
            // The pods' revision, the new one, and other revisions up to the limit.
            assert_eq!(revisions(&walk).len(), 4.min(number + 2));
        }
    }
}

/// Upstream's bound allows one more revision, and it has no bound if the limit is negative.
async fn limits_history(set: Builder<StatefulSet>, limit: i32) {
    let kept = usize::try_from(limit).unwrap_or(usize::MAX - 1);
    for run in Run::walks() {
        let mut walk = run.stored(set.clone().with("spec.revisionHistoryLimit", limit));
        let invariants = invariants_of(&walk.set);
        walk.scale_up(invariants).await.unwrap();
        walk.reread();
        for number in 0..10 {
            walk.change_image(&format!("foo-{number}"));
            walk.update().await.unwrap();
            walk.reread();
            let pods = walk.world.objects.pods_of(&walk.set);
            walk.sync(&pods).await.unwrap();
            let revisions = revisions(&walk);
            assert_eq!(revisions.len(), (kept + 1).min(number + 2));
            let newest = revisions.last().unwrap();
            assert_eq!(
                newest.name,
                walk.world.stored(&walk.set).status.current_revision
            );
        }
    }
}

mod test_stateful_set_control_limits_history {
    use super::*;

    #[tokio::test]
    async fn monotonic_update() {
        limits_history(set(3), 2).await;
    }

    #[tokio::test]
    async fn burst_update() {
        limits_history(set(3).parallel(), 2).await;
    }

    #[tokio::test]
    async fn zero_revision_history_limit() {
        limits_history(set(3), 0).await;
    }

    #[tokio::test]
    async fn negative_revision_history_limit() {
        limits_history(set(3), -2).await;
    }

    #[tokio::test]
    async fn positive_revision_history_limit() {
        limits_history(set(3), 5).await;
    }
}

/// Changes the image and the number of replicas, then returns to the first revision.
async fn rollback(set: Builder<StatefulSet>, replicas: i32) {
    let count = usize::try_from(replicas).unwrap();
    for run in Run::walks() {
        let mut walk = run.stored(set.clone());
        bring_up_and_change(&mut walk, replicas).await;
        walk.update().await.unwrap();
        walk.reread();
        assert_eq!(walk.images(), images(0, count));

        let first = Arc::clone(&revisions(&walk)[0]);
        walk.change(|set| *set = apply_revision(set, &first).unwrap());
        walk.update().await.unwrap();
        walk.reread();
        assert_eq!(walk.images(), images(count, 0));
        // Upstream doesn't check the revisions: the first one was reused with a new number.
        let revisions = revisions(&walk);
        assert_eq!(revisions.len(), 2);
        assert_eq!(
            (&revisions[1].name, revisions[1].revision),
            (&first.name, 3)
        );
        let pods = walk.world.objects.pods_of(&walk.set);
        assert!(pods.iter().all(|pod| pod.phase == PodPhase::Running));
    }
}

mod test_stateful_set_control_rollback {
    use super::*;

    #[tokio::test]
    async fn monotonic_image_update() {
        rollback(set(3), 3).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_up() {
        rollback(set(3), 5).await;
    }

    #[tokio::test]
    async fn monotonic_image_update_and_scale_down() {
        rollback(set(5), 3).await;
    }

    #[tokio::test]
    async fn burst_image_update() {
        rollback(set(3).parallel(), 3).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_up() {
        rollback(set(3).parallel(), 5).await;
    }

    #[tokio::test]
    async fn burst_image_update_and_scale_down() {
        rollback(set(5).parallel(), 3).await;
    }
}
