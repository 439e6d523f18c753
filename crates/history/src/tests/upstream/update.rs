//! Renumbering.

use statefulset_client::fake::{CallError, CallFault, Verb};

use super::fixtures::{World, revision, ss1};
use crate::error::Error;

/// Renumbers `ss1`'s first revision, which the history has created.
async fn renumber(world: &World, number: i64, fault: Option<CallFault>) -> Result<(), Error> {
    let set = ss1();
    let existing = world.create(&set, &revision(&set, 1, Some(0))).await;
    if let (World::Real { api, .. }, Some(fault)) = (world, fault) {
        api.fail(fault);
    }
    let renumbered = world
        .history()
        .update_controller_revision(&set, &existing, number);
    let renumbered = renumbered.await?;
    assert_eq!(renumbered.revision, number);
    assert_eq!(world.revision(&existing.name).unwrap()["revision"], number);
    Ok(())
}

fn updates(world: &World) -> usize {
    let requests = world.requests();
    requests
        .iter()
        .filter(|line| line.starts_with("update"))
        .count()
}

mod test_real_history_update_controller_revision {
    use super::*;

    #[tokio::test]
    async fn update_succeeds() {
        let world = World::real();
        renumber(&world, 2, None).await.unwrap();
        assert_eq!(updates(&world), 1);
    }

    #[tokio::test]
    async fn update_succeeds_no_noop() {
        let world = World::real();
        renumber(&world, 1, None).await.unwrap();
        assert_eq!(updates(&world), 0);
    }

    #[tokio::test]
    async fn update_fails_on_error() {
        let world = World::real();
        let fault = CallFault::new(
            Verb::Update,
            "controllerrevisions",
            u32::MAX,
            CallError::InternalError,
        );
        let error = renumber(&world, 11, Some(fault)).await.unwrap_err();
        assert!(!error.is_conflict() && !error.is_not_found(), "{error}");
        assert_eq!(updates(&world), 1);
    }

    /// Upstream passes after one update that stored nothing: its retry finds the edit in its local
    /// copy. Here the stored object must have the number.
    #[tokio::test(start_paused = true)]
    async fn update_on_succeeds_on_conflict() {
        let world = World::real();
        let fault = CallFault::new(Verb::Update, "controllerrevisions", 2, CallError::Conflict);
        renumber(&world, 2, Some(fault)).await.unwrap();
        assert_eq!(updates(&world), 3);
    }
}

mod test_fake_history_update_controller_revision {
    use super::*;

    #[tokio::test]
    async fn update_succeeds() {
        renumber(&World::fake(), 2, None).await.unwrap();
    }

    #[tokio::test]
    async fn update_succeeds_no_noop() {
        renumber(&World::fake(), 1, None).await.unwrap();
    }
}
