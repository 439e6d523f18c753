//! Counters, completion of a rollout, and the need for a write.

use serde_json::json;
use statefulset_controller_util::testing::builders::{self, Builder};

use super::*;

mod counts;

fn computed() -> StatefulSetStatus {
    StatefulSetStatus {
        observed_generation: 4,
        replicas: 3,
        ready_replicas: 3,
        current_replicas: 1,
        updated_replicas: 3,
        available_replicas: 2,
        current_revision: "web-1".into(),
        update_revision: "web-2".into(),
        collision_count: Some(0),
        ..StatefulSetStatus::default()
    }
}

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(3)
}

/// True if the rollout counts as complete.
fn completes(set: &Builder<StatefulSet>, status: StatefulSetStatus) -> bool {
    completes_at(set, status, false)
}

fn completes_at(
    set: &Builder<StatefulSet>,
    mut status: StatefulSetStatus,
    every_strategy: bool,
) -> bool {
    let before = status.clone();
    let is_complete = complete_update(&set.build(), &mut status, every_strategy);
    assert_eq!(is_complete, status != before);
    if status == before {
        return false;
    }
    let expected = StatefulSetStatus {
        current_replicas: before.updated_replicas,
        current_revision: before.update_revision.clone(),
        ..before
    };
    assert_eq!(status, expected);
    true
}

#[test]
fn rollout_completes_when_all_pods_are_updated_and_ready() {
    assert!(completes(&web(), computed()), "availability is ignored");
    assert!(
        completes(&web().partition(2), computed()),
        "the partition is ignored"
    );
    let bare = web().with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    assert!(completes(&bare, computed()));
    assert!(!completes(&web().on_delete(), computed()));
    let unknown = web().with("spec.updateStrategy", json!({"type": "Later"}));
    assert!(!completes(&unknown, computed()));
    for set in [web().replicas(2), web().replicas(4)] {
        assert!(!completes(&set, computed()));
    }
    for change in [
        |status: &mut StatefulSetStatus| status.replicas = 4,
        |status: &mut StatefulSetStatus| status.ready_replicas = 2,
        |status: &mut StatefulSetStatus| status.updated_replicas = 2,
    ] {
        let mut status = computed();
        change(&mut status);
        assert!(!completes(&web(), status));
    }
    let none = StatefulSetStatus {
        replicas: 0,
        ready_replicas: 0,
        updated_replicas: 0,
        ..computed()
    };
    assert!(completes(&web().replicas(0), none));
}

#[test]
fn every_strategy_completes_from_1_37_on() {
    for strategy in ["RollingUpdate", "OnDelete", "Recreate", "Later"] {
        let set = web().with("spec.updateStrategy", json!({"type": strategy}));
        assert!(completes_at(&set, computed(), true), "{strategy}");
        let before = completes_at(&set, computed(), false);
        assert_eq!(before, strategy == "RollingUpdate", "{strategy}");
        assert!(!completes_at(&set.replicas(4), computed(), true));
    }
}

#[test]
fn changed_status_is_written() {
    let recorded = |status: &StatefulSetStatus| {
        let status = serde_json::to_value(status).unwrap();
        web().with("status", status).build()
    };
    let set = recorded(&computed());
    assert!(!inconsistent_status(&set, &computed()));
    let news: [fn(&mut StatefulSetStatus); 9] = [
        |status| status.observed_generation += 1,
        |status| status.replicas += 1,
        |status| status.ready_replicas += 1,
        |status| status.current_replicas += 1,
        |status| status.updated_replicas += 1,
        |status| status.available_replicas += 1,
        |status| status.current_revision = "x".into(),
        |status| status.update_revision = "x".into(),
        |status| status.conditions = serde_json::from_str(r#"[{"type":"X"}]"#).ok(),
    ];
    for (index, change) in news.into_iter().enumerate() {
        let mut status = computed();
        change(&mut status);
        assert!(inconsistent_status(&set, &status), "{index}");
    }
    let no_news: [fn(&mut StatefulSetStatus); 4] = [
        |status| status.observed_generation -= 1,
        |status| status.collision_count = Some(7),
        |status| status.collision_count = None,
        |status| status.conditions = serde_json::from_str("[]").ok(),
    ];
    for (index, change) in no_news.into_iter().enumerate() {
        let mut status = computed();
        change(&mut status);
        assert!(!inconsistent_status(&set, &status), "{index}");
    }
}
