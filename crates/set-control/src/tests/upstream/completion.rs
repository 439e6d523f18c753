//! Completion of an update, since 1.37.

use serde_json::json;
use statefulset_controller_util::stateful_set::StatefulSetStatus;
use statefulset_controller_util::testing::upstream::set;

use crate::status::complete_update;

/// Upstream's table is over strategies and counters; availability has no column.
#[test]
fn test_complete_update() {
    for strategy in ["RollingUpdate", "OnDelete", "Recreate"] {
        for ([desired, existing, ready, updated], is_complete) in [
            ([3, 3, 3, 3], true),
            ([0, 0, 0, 0], true),
            ([3, 3, 3, 2], false),
            ([3, 3, 2, 3], false),
            ([3, 4, 3, 3], false),
            ([4, 3, 3, 3], false),
            ([2, 3, 3, 3], false),
        ] {
            let set = set(desired).with("spec.updateStrategy", json!({"type": strategy}));
            let before = StatefulSetStatus {
                replicas: existing,
                ready_replicas: ready,
                updated_replicas: updated,
                current_replicas: 1,
                current_revision: "foo-1".into(),
                update_revision: "foo-2".into(),
                ..StatefulSetStatus::default()
            };
            let mut status = before.clone();
            let completed = complete_update(&set.build(), &mut status, true);
            assert_eq!(
                completed, is_complete,
                "{strategy} {desired} {existing} {ready} {updated}"
            );
            let expected = StatefulSetStatus {
                current_replicas: updated,
                current_revision: "foo-2".into(),
                ..before.clone()
            };
            assert_eq!(status, if is_complete { expected } else { before });
        }
    }
}
