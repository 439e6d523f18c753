//! Template updates and rollbacks, and the remaining revisions.

use std::sync::Arc;

use kube_apimachinery::pod::PodPhase;
use statefulset_controller_util::pod::PodName;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, StatefulSet};
use statefulset_history::apply_revision;
use statefulset_pod_control::stateful_set_utils::ordinal;

use super::walks::{
    Builder, Call, Counts, FOO_REVISION, Invariants, World, assert_injected, claim_pod_name,
    invariants, policies, set, walks,
};

/// Returns the invariants of the set that hold in every state.
fn invariants_of(set: &StatefulSet) -> Invariants {
    if set.spec.allows_burst() {
        invariants::burst
    } else {
        invariants::monotonic
    }
}

/// Scales the set up, then changes its image to `foo` and its number of replicas.
async fn bring_up_and_change(world: &mut World, replicas: i32) {
    let invariants = invariants_of(&world.set);
    world.scale_up(invariants).await.unwrap();
    world.set.spec.replicas = replicas;
    world.change_image("foo");
}

/// Returns the images of some pods of the old template, followed by some of the new one.
fn images(old: usize, new: usize) -> Vec<&'static str> {
    [vec!["nginx"; old], vec!["foo"; new]].concat()
}

/// Returns the images of the set's pods, by ordinal.
fn images_of(world: &World) -> Vec<String> {
    let image = |name: String| {
        let pod = world.pod_json(&*name);
        let image = pod["spec"]["containers"][0]["image"].as_str();
        image.expect("pods have an image").to_owned()
    };
    world.pod_names().into_iter().map(image).collect()
}

/// Changes the image and the number of replicas, and waits for the update, which needs this number
/// of deletions.
async fn rolling_update(set: Builder<StatefulSet>, replicas: i32, deletions: usize) {
    for mut world in walks(set.clone()) {
        bring_up_and_change(&mut world, replicas).await;
        world.roll_out().await.unwrap();
        assert_eq!(
            images_of(&world),
            images(0, usize::try_from(replicas).unwrap())
        );
        assert_eq!(world.requests(Call::DeletePod), deletions);
        // Upstream doesn't check the status.
        assert_eq!(world.counts(), Counts::all(replicas));
        let status = &world.set.status;
        assert_eq!(&*status.current_revision, FOO_REVISION);
        assert_eq!(&*status.update_revision, FOO_REVISION);
        assert_eq!(status.collision_count, Some(0));
        assert_eq!(world.requests(Call::UpdatePod), 0);
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
        async fn partitioned_rollout_deletes_each_old_pod_once() {
            rolling_update(set(5).parallel().partition(0), 3, 5).await;
        }
    }
}

/// Fails if a pod of the set owns a claim.
#[track_caller]
fn assert_no_claim_of_a_pod(world: &World) {
    for claim in world.claims() {
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
fn assert_claims_go_with_scaled_pods(world: &World) {
    let set = &world.set;
    let delete = set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete;
    for claim in world.claims() {
        let pod = claim_pod_name(set, &claim.name).expect("each claim is a pod's");
        let scaled =
            ordinal(&PodName::from(pod)).is_some_and(|ordinal| ordinal.index_in(set).is_none());
        let names = claim.owner_references.iter().map(|owner| &*owner.name);
        let pods: Vec<&str> = names.filter(|name| name.starts_with("foo-")).collect();
        let desired = (delete && scaled).then_some(pod);
        assert_eq!(pods, Vec::from_iter(desired), "{}", claim.name);
    }
}

/// Removes the claims that a pod of the set owns, as if all those pods were gone.
fn remove_claims_of_pods(world: &World) {
    for claim in world.claims() {
        if claim
            .owner_references
            .iter()
            .any(|owner| owner.name.starts_with("foo-"))
        {
            world.remove_claim(&claim.name);
        }
    }
}

/// Changes the image and the number of replicas. Existing pods keep their template until they are
/// recreated.
///
/// About the claims, upstream checks only that no pod owns one after those claims are removed,
/// which can't fail.
async fn on_delete_update(set: Builder<StatefulSet>, replicas: i32, old: usize, new: usize) {
    for mut world in policies(set.clone().on_delete()) {
        let invariants = invariants_of(&world.set);
        bring_up_and_change(&mut world, replicas).await;
        let most = world.claim_names().len().max(old + new);
        world.roll_out().await.unwrap();
        world.check(invariants::update).unwrap();
        assert_eq!(world.claim_names().len(), most);
        assert_claims_go_with_scaled_pods(&world);
        remove_claims_of_pods(&world);
        assert_eq!(images_of(&world), images(old, new));
        assert_no_claim_of_a_pod(&world);

        world.scale(0);
        world.scale_down(invariants).await.unwrap();
        assert!(world.pod_names().is_empty());
        assert_no_claim_of_a_pod(&world);
        world.scale(replicas);
        world.scale_up(invariants).await.unwrap();
        assert_eq!(images_of(&world), images(0, old + new));
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
    for mut world in policies(set.clone().partition(2)) {
        bring_up_and_change(&mut world, replicas).await;
        world.roll_out().await.unwrap();
        assert_eq!(images_of(&world), images(2, new));
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
    for mut world in policies(set(3)) {
        world.scale_up(invariants::monotonic).await.unwrap();
        for number in 0..7 {
            world.change_image(&format!("foo-{number}"));
            world.fail(Call::UpdateStatus, 0);
            assert_injected(world.roll_out().await);
            // The pods' revision, the new one, and other revisions up to the limit.
            assert_eq!(world.revisions().len(), 4.min(number + 2));
        }
    }
}

/// Upstream's bound allows one more revision, and it has no bound if the limit is negative.
async fn limits_history(set: Builder<StatefulSet>, limit: i32) {
    let kept = usize::try_from(limit).unwrap_or(usize::MAX - 1);
    for mut world in walks(set.clone().with("spec.revisionHistoryLimit", limit)) {
        let invariants = invariants_of(&world.set);
        world.scale_up(invariants).await.unwrap();
        for number in 0..10 {
            world.change_image(&format!("foo-{number}"));
            world.roll_out().await.unwrap();
            world.step().await;
            let revisions = world.revisions();
            assert_eq!(revisions.len(), (kept + 1).min(number + 2));
            let newest = revisions.last().unwrap();
            assert_eq!(newest.name, world.set.status.current_revision);
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
    for mut world in walks(set.clone()) {
        bring_up_and_change(&mut world, replicas).await;
        world.roll_out().await.unwrap();
        assert_eq!(images_of(&world), images(0, count));

        let first = Arc::clone(&world.revisions()[0]);
        world.update(|set| *set = apply_revision(set, &first).unwrap());
        world.roll_out().await.unwrap();
        assert_eq!(images_of(&world), images(count, 0));
        // Upstream doesn't check the revisions: the first one was reused with a new number.
        let revisions = world.revisions();
        assert_eq!(revisions.len(), 2);
        assert_eq!(
            (&revisions[1].name, revisions[1].revision),
            (&first.name, 3)
        );
        let mut pods = world.pods().into_iter();
        assert!(pods.all(|pod| pod.phase == PodPhase::Running));
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
