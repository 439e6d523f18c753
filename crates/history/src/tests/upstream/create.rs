//! Creation, and collisions of names.

use std::sync::Arc;

use statefulset_controller_util::controller_revision::ControllerRevision;

use super::fixtures::{World, object, revision, ss1, ss2};
use crate::new_revision::NewRevision;

/// Creates a revision, and returns it with the new collision count.
async fn create(
    world: &World,
    revision: &NewRevision,
    mut count: i32,
) -> (Arc<ControllerRevision>, i32) {
    let set = if &*revision.parent_name == "ss1" {
        ss1()
    } else {
        ss2()
    };
    let history = world.history();
    let created = history.create_controller_revision(&set, revision, &mut count);
    (created.await.unwrap(), count)
}

/// Creates a revision under its first name, with other revisions stored.
async fn creates_under_its_own_name(world: &World, revision: &NewRevision) {
    let (created, count) = create(world, revision, 0).await;
    assert_eq!(*created.name, *revision.name);
    assert_eq!(count, 0);
    let stored = world.revision(&revision.name).unwrap();
    assert_eq!(stored["metadata"]["namespace"], "default");
}

/// Creates a revision whose first name is taken: the new name is that of the returned count.
async fn renames(
    world: &World,
    revision: &NewRevision,
    count: i32,
) -> (Arc<ControllerRevision>, i32) {
    let (created, count) = create(world, revision, count).await;
    assert_ne!(*created.name, *revision.name);
    assert_eq!(*created.name, *revision.name_for(count));
    (created, count)
}

mod test_real_history_create_controller_revision {
    use super::*;

    #[tokio::test]
    async fn creates_new() {
        creates_under_its_own_name(&World::real(), &revision(&ss1(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_doesnt_conflict_when_parents_differ() {
        let world = World::real();
        create(&world, &revision(&ss1(), 1, Some(0)), 0).await;
        creates_under_its_own_name(&world, &revision(&ss2(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_renames_on_conflict() {
        let world = World::real();
        let first = revision(&ss1(), 1, Some(0));
        let forged = NewRevision {
            name: first.name.clone(),
            labels: first.labels.clone(),
            ..revision(&ss1(), 2, Some(0))
        };
        world.put_revision(&object(&forged));
        let (renamed, count) = renames(&world, &first, 0).await;
        assert_eq!(count, 1);
        // The second attempt finds the same data, which is no collision.
        assert_eq!(create(&world, &first, count).await, (renamed, 1));
        assert_eq!(world.count(), 2);
    }
}

mod test_fake_history_create_controller_revision {
    use super::*;

    #[tokio::test]
    async fn creates_new() {
        creates_under_its_own_name(&World::fake(), &revision(&ss1(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_doesnt_conflict_when_parents_differ() {
        let world = World::fake();
        create(&world, &revision(&ss1(), 1, Some(0)), 0).await;
        creates_under_its_own_name(&world, &revision(&ss2(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_renames_on_conflict() {
        let world = World::fake();
        let first = revision(&ss1(), 1, Some(0));
        create(&world, &first, 0).await;
        let (_, count) = renames(&world, &first, 0).await;
        assert_eq!(count, 1);
        // The fake counts every taken name, even one with the same data.
        let (_, count) = renames(&world, &first, count).await;
        assert_eq!(count, 2);
        assert_eq!(world.count(), 3);
    }
}
