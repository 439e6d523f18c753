//! Creation, and collisions of names.

use super::fixtures::{Server, object, revision, ss1, ss2};
use crate::controller_history::Created;
use crate::new_revision::NewRevision;

async fn create(server: &Server, revision: &NewRevision, count: i32) -> Created {
    let set = if &*revision.parent_name == "ss1" {
        ss1()
    } else {
        ss2()
    };
    let created = server
        .history()
        .create_controller_revision(&set, revision, count);
    created.await.unwrap()
}

/// Creates a revision under its first name, with other revisions stored.
async fn creates_under_its_own_name(server: &Server, revision: &NewRevision) {
    let created = create(server, revision, 0).await;
    assert_eq!(*created.revision.name, *revision.name);
    assert_eq!(created.collision_count, 0);
    let stored = server.stored(&revision.name).unwrap();
    assert_eq!(stored["metadata"]["namespace"], "default");
}

/// Creates a revision whose first name is taken: the new name is that of the returned count.
async fn renames(server: &Server, revision: &NewRevision, count: i32) -> Created {
    let created = create(server, revision, count).await;
    assert_ne!(*created.revision.name, *revision.name);
    assert_eq!(
        *created.revision.name,
        *revision.name_for(created.collision_count)
    );
    created
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
        let renamed = renames(&server, &first, 0).await;
        assert_eq!(renamed.collision_count, 1);
        // The second attempt finds the same data, which is no collision.
        let again = create(&server, &first, renamed.collision_count).await;
        assert_eq!(again.collision_count, 1);
        assert_eq!(again.revision, renamed.revision);
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
        let renamed = renames(&server, &first, 0).await;
        assert_eq!(renamed.collision_count, 1);
        // The fake counts every taken name, even one with the same data.
        let again = renames(&server, &first, renamed.collision_count).await;
        assert_eq!(again.collision_count, 2);
        assert_eq!(server.count(), 3);
    }
}
