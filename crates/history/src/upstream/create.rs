//! Creation, and collisions of names.

use std::sync::Arc;

use statefulset_controller_util::controller_revision::ControllerRevision;

use super::fixtures::{Server, object, revision, ss1, ss2};
use crate::new_revision::NewRevision;

/// Creates a revision, and returns it with the new collision count.
async fn create(
    server: &Server,
    revision: &NewRevision,
    mut count: i32,
) -> (Arc<ControllerRevision>, i32) {
    let set = if &*revision.parent_name == "ss1" {
        ss1()
    } else {
        ss2()
    };
    let history = server.history();
    let created = history.create_controller_revision(&set, revision, &mut count);
    (created.await.unwrap(), count)
}

/// Creates a revision under its first name, with other revisions stored.
async fn creates_under_its_own_name(server: &Server, revision: &NewRevision) {
    let (created, count) = create(server, revision, 0).await;
    assert_eq!(*created.name, *revision.name);
    assert_eq!(count, 0);
    let stored = server.stored(&revision.name).unwrap();
    assert_eq!(stored["metadata"]["namespace"], "default");
}

/// Creates a revision whose first name is taken: the new name is that of the returned count.
async fn renames(
    server: &Server,
    revision: &NewRevision,
    count: i32,
) -> (Arc<ControllerRevision>, i32) {
    let (created, count) = create(server, revision, count).await;
    assert_ne!(*created.name, *revision.name);
    assert_eq!(*created.name, *revision.name_for(count));
    (created, count)
}

mod test_real_history_create_controller_revision {
    use super::*;

    #[tokio::test]
    async fn creates_new() {
        creates_under_its_own_name(&Server::real(), &revision(&ss1(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_doesnt_conflict_when_parents_differ() {
        let server = Server::real();
        create(&server, &revision(&ss1(), 1, Some(0)), 0).await;
        creates_under_its_own_name(&server, &revision(&ss2(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_renames_on_conflict() {
        let server = Server::real();
        let first = revision(&ss1(), 1, Some(0));
        let forged = NewRevision {
            name: first.name.clone(),
            labels: first.labels.clone(),
            ..revision(&ss1(), 2, Some(0))
        };
        server.load(&object(&forged));
        let (renamed, count) = renames(&server, &first, 0).await;
        assert_eq!(count, 1);
        // The second attempt finds the same data, which is no collision.
        assert_eq!(create(&server, &first, count).await, (renamed, 1));
        assert_eq!(server.count(), 2);
    }
}

mod test_fake_history_create_controller_revision {
    use super::*;

    #[tokio::test]
    async fn creates_new() {
        creates_under_its_own_name(&Server::fake(), &revision(&ss1(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_doesnt_conflict_when_parents_differ() {
        let server = Server::fake();
        create(&server, &revision(&ss1(), 1, Some(0)), 0).await;
        creates_under_its_own_name(&server, &revision(&ss2(), 1, Some(0))).await;
    }

    #[tokio::test]
    async fn create_renames_on_conflict() {
        let server = Server::fake();
        let first = revision(&ss1(), 1, Some(0));
        create(&server, &first, 0).await;
        let (_, count) = renames(&server, &first, 0).await;
        assert_eq!(count, 1);
        // The fake counts every taken name, even one with the same data.
        let (_, count) = renames(&server, &first, count).await;
        assert_eq!(count, 2);
        assert_eq!(server.count(), 3);
    }
}
