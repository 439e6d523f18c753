//! Deletion.

use super::fixtures::{Server, cached, object, revision, ss1, ss2};
use crate::new_revision::NewRevision;

/// Deletes `ss1`'s first revision after the history has created `existing`; returns true if it
/// existed.
async fn deletes(server: &Server, existing: &[NewRevision]) -> bool {
    for revision in existing {
        let set = if &*revision.parent_name == "ss1" {
            ss1()
        } else {
            ss2()
        };
        server.create(&set, revision).await;
    }
    let count = server.count();
    let doomed = cached(&object(&revision(&ss1(), 1, Some(0))));
    match server.history().delete_controller_revision(&doomed).await {
        Ok(()) => {
            assert_eq!(server.stored(&doomed.name), None);
            assert_eq!(server.count(), count - 1);
            true
        }
        Err(error) => {
            assert!(error.is_not_found(), "{error}");
            assert_eq!(server.count(), count, "nothing else goes");
            false
        }
    }
}

fn of_another() -> [NewRevision; 2] {
    [revision(&ss2(), 1, Some(0)), revision(&ss2(), 2, Some(0))]
}

mod test_real_history_delete_controller_revision {
    use super::*;

    #[tokio::test]
    async fn delete_empty_fails() {
        assert!(!deletes(&Server::real(), &[]).await);
    }

    #[tokio::test]
    async fn delete_existing_succeeds() {
        assert!(deletes(&Server::real(), &[revision(&ss1(), 1, Some(0))]).await);
    }

    #[tokio::test]
    async fn delete_non_existing_fails() {
        assert!(!deletes(&Server::real(), &of_another()).await);
    }
}

mod test_fake_history_delete_controller_revision {
    use super::*;

    #[tokio::test]
    async fn delete_empty_fails() {
        assert!(!deletes(&Server::fake(), &[]).await);
    }

    #[tokio::test]
    async fn delete_existing_succeeds() {
        assert!(deletes(&Server::fake(), &[revision(&ss1(), 1, Some(0))]).await);
    }

    #[tokio::test]
    async fn delete_non_existing_fails() {
        assert!(!deletes(&Server::fake(), &of_another()).await);
    }
}
