//! Renumbering.

use statefulset_client::fake::{FaultError, FaultRule, Verb};

use super::fixtures::{Server, revision, ss1};
use crate::error::Error;

/// Renumbers `ss1`'s first revision, which the history has created.
async fn renumber(server: &Server, number: i64, fault: Option<FaultRule>) -> Result<(), Error> {
    let set = ss1();
    let existing = server.create(&set, &revision(&set, 1, Some(0))).await;
    if let (Server::Real { api, .. }, Some(fault)) = (server, fault) {
        api.fail(fault);
    }
    let renumbered = server
        .history()
        .update_controller_revision(&set, &existing, number);
    let renumbered = renumbered.await?;
    assert_eq!(renumbered.revision, number);
    assert_eq!(server.stored(&existing.name).unwrap()["revision"], number);
    Ok(())
}

fn updates(server: &Server) -> usize {
    let requests = server.requests();
    requests
        .iter()
        .filter(|line| line.starts_with("update"))
        .count()
}

mod test_real_history_update_controller_revision {
    use super::*;

    #[tokio::test]
    async fn update_succeeds() {
        let server = Server::real();
        renumber(&server, 2, None).await.unwrap();
        assert_eq!(updates(&server), 1);
    }

    #[tokio::test]
    async fn update_succeeds_no_noop() {
        let server = Server::real();
        renumber(&server, 1, None).await.unwrap();
        assert_eq!(updates(&server), 0);
    }

    #[tokio::test]
    async fn update_fails_on_error() {
        let server = Server::real();
        let fault = FaultRule::new(
            Verb::Update,
            "controllerrevisions",
            u32::MAX,
            FaultError::InternalError,
        );
        let error = renumber(&server, 11, Some(fault)).await.unwrap_err();
        assert!(!error.is_conflict() && !error.is_not_found(), "{error}");
        assert_eq!(updates(&server), 1);
    }

    /// Upstream passes after one update that stored nothing: its retry finds the edit in its local
    /// copy. Here the stored object must have the number.
    #[tokio::test(start_paused = true)]
    async fn update_on_succeeds_on_conflict() {
        let server = Server::real();
        let fault = FaultRule::new(Verb::Update, "controllerrevisions", 2, FaultError::Conflict);
        renumber(&server, 2, Some(fault)).await.unwrap();
        assert_eq!(updates(&server), 3);
    }
}

mod test_fake_history_update_controller_revision {
    use super::*;

    #[tokio::test]
    async fn update_succeeds() {
        renumber(&Server::fake(), 2, None).await.unwrap();
    }

    #[tokio::test]
    async fn update_succeeds_no_noop() {
        renumber(&Server::fake(), 1, None).await.unwrap();
    }
}
