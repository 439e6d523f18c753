//! Ordinals of a set's pods, and their order.

use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use serde_json::json;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::testing::upstream::set;
use statefulset_pod_control::fake::{FakeObjectManager, stateful_set_pod};

use super::drivers::ordinal_of;
use super::runs::Run;
use crate::replicas::{Replicas, SetRevision};
use crate::testing::invariants;

mod test_stateful_set_control_with_start_ordinal {
    use super::*;

    /// Upstream checks no invariants here. The monotonic ones hold.
    #[tokio::test]
    async fn creates_pods_with_start_ordinal() {
        for run in Run::walks() {
            let mut walk = run.stored(set(3).start(2));
            walk.scale_up(invariants::monotonic).await.unwrap();
            walk.reread();
            assert_eq!(walk.counts(), [3, 3, 3]);
            assert_eq!(walk.pod_names(), ["foo-2", "foo-3", "foo-4"]);
        }
    }
}

/// Here sorting is part of the split into slots: wanted pods ascend, the others descend.
#[test]
fn test_ascending_ordinal() {
    for run in Run::walks() {
        let wanted = set(10).build();
        let objects = FakeObjectManager::default();
        for ordinal in 0..10 {
            let mut pod = stateful_set_pod(&wanted, ordinal);
            pod["status"] = json!({"phase": "Running"});
            objects.pods.put(pod);
        }
        let mut pods: Vec<Arc<Pod>> = objects.pods.cache().list();
        pods.shuffle(&mut StdRng::seed_from_u64(run.seed));
        let ordered = |replicas| {
            let set = set(replicas).build();
            // Without data, it leaves the set as it is.
            let revision = Arc::new(ControllerRevision {
                name: "foo-1".into(),
                ..ControllerRevision::default()
            });
            let revision = SetRevision::new(&set, &revision).unwrap();
            let now = "2026-03-01T12:00:00Z".parse().unwrap();
            let replicas = Replicas::new(&set, &revision, &revision, &pods, now).unwrap();
            let ordinals: Vec<i32> = replicas.pods().map(ordinal_of).collect();
            ordinals
        };
        assert_eq!(ordered(10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(ordered(0), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }
}
