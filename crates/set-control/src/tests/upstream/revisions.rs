//! Revisions of a set, and the effect of applying one.

use std::sync::Arc;

use serde_json::json;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::{History as _, NewRevision, RevisionData, apply_revision};

use super::walks::{Builder, NGINX_REVISION, policies, set};
use crate::revisions::get_stateful_set_revisions;

fn new_revision(set: &StatefulSet, number: i64) -> NewRevision {
    NewRevision::new(
        set,
        &RevisionData::new(&set.spec.template).unwrap(),
        number,
        0,
    )
}

/// Returns three sets, each with a changed template.
fn sets() -> [Builder<StatefulSet>; 3] {
    let first = set(3);
    let second = first.clone().image("foo");
    let second = second.with("status.currentRevision", NGINX_REVISION);
    let third = second
        .clone()
        .with("spec.template.metadata.labels.new", "label");
    [first, second, third]
}

/// Checks the current and the update revision of set `of`, as set and number each, with the
/// revisions of the first `existing` sets stored. `count` revisions exist afterwards.
async fn finds(existing: usize, of: usize, [current, update]: [(usize, i64); 2], count: usize) {
    for world in policies(sets()[of].clone()) {
        let data = sets().map(|set| new_revision(&set.build(), 1).data);
        for (number, index) in (1..).zip(0..existing) {
            let (set, mut count) = (sets()[index].build(), 0);
            let revision = new_revision(&set, number);
            let history = &world.history;
            let created = history.create_controller_revision(&set, &revision, &mut count);
            created.await.unwrap();
        }
        let revisions = world.revisions();
        assert_eq!(revisions.len(), existing);
        let (history, gates) = (&*world.history, FeatureGates::default());
        let found = get_stateful_set_revisions(history, gates, &world.set, &revisions);
        let found = found.await.unwrap();
        assert_eq!(found.collision_count, 0);
        for (found, (index, number)) in [(&found.current, current), (&found.update, update)] {
            assert_eq!(
                (&*found.data.to_str(), found.revision),
                (&*data[index], number)
            );
        }
        assert_eq!(world.revisions().len(), count);
    }
}

mod test_stateful_set_control_get_set_revisions {
    use super::*;

    #[tokio::test]
    async fn creates_initial_revision() {
        finds(0, 0, [(0, 1), (0, 1)], 1).await;
    }

    #[tokio::test]
    async fn creates_revision_on_update() {
        finds(1, 1, [(0, 1), (1, 2)], 2).await;
    }

    #[tokio::test]
    async fn must_not_recreate_a_new_revision_of_same_set() {
        finds(2, 1, [(0, 1), (1, 2)], 2).await;
    }

    #[tokio::test]
    async fn must_rollback_to_a_previous_revision() {
        finds(3, 1, [(0, 1), (1, 4)], 3).await;
    }
}

fn recorded(revision: &NewRevision) -> Arc<ControllerRevision> {
    let body = revision.body(&revision.name);
    Arc::new(ControllerRevision::decode(&body).unwrap())
}

#[test]
fn test_create_apply_revision() {
    let original = set(1).with("status.collisionCount", 0);
    let first = new_revision(&original.build(), 1);
    let changed = original
        .with("spec.template.spec.containers.0.name", "foo")
        .with("metadata.annotations", json!({"foo": "bar"}))
        .build();
    let restored = apply_revision(&changed, &recorded(&first)).unwrap();
    let second = new_revision(&restored, 2);
    assert_eq!(second.data, first.data);
    assert_eq!(second.annotations["foo"], "bar");
    // Upstream doesn't check the name, which proves that both are the same revision.
    assert_eq!(second.name, first.name);
}

#[test]
fn test_rolling_update_apply_revision() {
    let first = set(1).with("status.collisionCount", 0);
    let env = json!([{"name": "foo", "value": "bar"}]);
    let second = first
        .clone()
        .with("spec.template.spec.containers.0.env", env);
    let second = second.build();
    for desired in [&first.build(), &second] {
        let applied = apply_revision(&second, &recorded(&new_revision(desired, 1))).unwrap();
        let template = |set: &StatefulSet| set.spec.template.to_value().unwrap();
        assert_eq!(template(&applied), template(desired));
    }
}
