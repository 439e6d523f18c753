//! Deletion.

use super::fixtures::{World, cached, object, revision, ss1, ss2};
use crate::new_revision::NewRevision;

/// Deletes `ss1`'s first revision after the history has created `existing`; returns true if it
/// existed.
async fn deletes(world: &World, existing: &[NewRevision]) -> bool {
    for revision in existing {
        let set = if &*revision.parent_name == "ss1" {
            ss1()
        } else {
            ss2()
        };
        world.create(&set, revision).await;
    }
    let count = world.count();
    let doomed = cached(&object(&revision(&ss1(), 1, Some(0))));
    match world.history().delete_controller_revision(&doomed).await {
        Ok(()) => {
            assert_eq!(world.revision(&doomed.name), None);
            assert_eq!(world.count(), count - 1);
            true
        }
        Err(error) => {
            assert!(error.is_not_found(), "{error}");
            assert_eq!(world.count(), count, "nothing else goes");
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
        assert!(!deletes(&World::real(), &[]).await);
    }

    #[tokio::test]
    async fn delete_existing_succeeds() {
        assert!(deletes(&World::real(), &[revision(&ss1(), 1, Some(0))]).await);
    }

    #[tokio::test]
    async fn delete_non_existing_fails() {
        assert!(!deletes(&World::real(), &of_another()).await);
    }
}

mod test_fake_history_delete_controller_revision {
    use super::*;

    #[tokio::test]
    async fn delete_empty_fails() {
        assert!(!deletes(&World::fake(), &[]).await);
    }

    #[tokio::test]
    async fn delete_existing_succeeds() {
        assert!(deletes(&World::fake(), &[revision(&ss1(), 1, Some(0))]).await);
    }

    #[tokio::test]
    async fn delete_non_existing_fails() {
        assert!(!deletes(&World::fake(), &of_another()).await);
    }
}
