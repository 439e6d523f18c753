//! Failed syncs: their completed steps, and the error that they return.

use statefulset_client::error::Error as ApiError;

use super::walks::{Call, Counts, assert_injected, invariants, policies, set, walks};

/// The second deletion fails.
#[tokio::test]
async fn test_stateful_set_control_scale_down_delete_error() {
    for mut world in policies(set(3)) {
        world.scale_up(invariants::monotonic).await.unwrap();
        world.scale(0);
        world.fail(Call::DeletePod, 1);
        assert_injected(world.scale_down(invariants::monotonic).await);
        world.scale_down(invariants::monotonic).await.unwrap();
        assert_eq!(world.counts(), Counts::all(0));
    }
}

fn sync_error() -> ApiError {
    ApiError::api(500, "InternalError", "sync error")
}

fn status_error() -> ApiError {
    ApiError::api(500, "InternalError", "status error")
}

/// Runs one sync whose first creation and status write fail as requested; returns its error.
async fn status_update(sync_fails: bool, status_fails: bool) -> Option<String> {
    let mut world = walks(set(3)).next().unwrap();
    if sync_fails {
        world.fail_with(Call::CreatePod, 0, sync_error);
    }
    if status_fails {
        world.fail_with(Call::UpdateStatus, 0, status_error);
    }
    let outcome = world.sync().await;
    assert_eq!(world.requests(Call::UpdateStatus), 1);
    assert!(outcome.status.is_some());
    outcome.error.map(|error| error.to_string())
}

mod test_stateful_set_status_update {
    use super::*;

    #[tokio::test]
    async fn no_error() {
        assert_eq!(status_update(false, false).await, None);
    }

    #[tokio::test]
    async fn sync_error() {
        assert_eq!(
            status_update(true, false).await.as_deref(),
            Some("sync error")
        );
    }

    #[tokio::test]
    async fn status_error() {
        assert_eq!(
            status_update(false, true).await.as_deref(),
            Some("status error")
        );
    }

    #[tokio::test]
    async fn sync_and_status_error() {
        assert_eq!(
            status_update(true, true).await.as_deref(),
            Some("sync error")
        );
    }
}
