//! Ordinals of a set's pods, and their order.

use std::sync::Arc;

use rand::seq::SliceRandom as _;
use statefulset_controller_util::controller_revision::ControllerRevision;

use super::walks::{Counts, invariants, ordinal_of, set, stateful_set_pod, walks};
use crate::replicas::{Replicas, SetRevision};

mod test_stateful_set_control_with_start_ordinal {
    use super::*;

    /// Upstream checks no invariants here. The monotonic ones hold.
    #[tokio::test]
    async fn creates_pods_with_start_ordinal() {
        for mut world in walks(set(3).start(2)) {
            world.scale_up(invariants::monotonic).await.unwrap();
            assert_eq!(world.counts(), Counts::all(3));
            assert_eq!(world.pod_names(), ["foo-2", "foo-3", "foo-4"]);
        }
    }
}

/// Here sorting is part of the split into slots: desired pods ascend, the others descend.
#[test]
fn test_ascending_ordinal() {
    for mut world in walks(set(10)) {
        for ordinal in 0..10 {
            let pod = stateful_set_pod(&world.set, ordinal);
            world.put_pod(&pod.phase("Running"));
        }
        let mut pods = world.pods();
        pods.shuffle(&mut world.random);
        let ordered = |replicas| {
            let set = set(replicas).build();
            // Without data, it leaves the set as it is.
            let revision = Arc::new(ControllerRevision {
                name: "foo-1".into(),
                ..ControllerRevision::default()
            });
            let revision = SetRevision::new(&set, &revision).unwrap();
            let replicas = Replicas::new(&set, &revision, &revision, &pods, world.now).unwrap();
            let ordinals: Vec<i32> = replicas.pods().map(ordinal_of).collect();
            ordinals
        };
        assert_eq!(ordered(10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(ordered(0), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }
}
