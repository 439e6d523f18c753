//! Creation and deletion of parallel sets' pods in doubling batches.

use super::walks::{Call, invariants, set, walks};

/// Number of calls of a kind, and the maximum in parallel.
type Calls = (usize, usize);

/// Scales a set twice, in few syncs. Upstream requires some overlap of the creations; here the
/// numbers are exact, like the batches.
async fn scales(from: i32, to: i32, creations: Calls, deletions: Calls) {
    let labels = "spec.volumeClaimTemplates.0.metadata.labels.test";
    let set = set(0).parallel().with(labels, "test");
    let mut world = walks(set).next().unwrap();
    for replicas in [from, to] {
        world.scale(replicas);
        if world.set.status.replicas < replicas {
            world.parallel_scale_up(invariants::burst).await.unwrap();
        } else {
            world.parallel_scale_down(invariants::burst).await.unwrap();
        }
        assert_eq!(world.set.status.replicas, replicas);
    }
    assert_eq!(world.parallel_requests(Call::CreatePod), creations);
    assert_eq!(world.parallel_requests(Call::DeletePod), deletions);
}

mod test_parallel_scale {
    use super::*;

    #[tokio::test]
    async fn scale_up_from_3_to_30() {
        scales(3, 30, (30, 15), (0, 0)).await;
    }

    /// Each pod is deleted twice, because the second sync sees it again.
    #[tokio::test]
    async fn scale_down_from_10_to_1() {
        scales(10, 1, (10, 4), (18, 4)).await;
    }

    #[tokio::test]
    async fn scale_down_to_0() {
        scales(501, 0, (501, 50), (1002, 50)).await;
    }

    #[tokio::test]
    async fn scale_up_from_0() {
        scales(0, 1000, (1000, 50), (0, 0)).await;
    }
}
