//! Failed syncs: their completed steps, and the error that they return.

use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::testing::upstream::set;

use super::drivers::assert_injected;
use super::fixtures::injected;
use super::runs::Run;
use crate::testing::invariants;

/// The second deletion fails.
#[tokio::test]
async fn test_stateful_set_control_scale_down_delete_error() {
    for run in Run::policies() {
        let mut walk = run.stored(set(3));
        walk.scale_up(invariants::monotonic).await.unwrap();
        walk.reread();
        walk.change(|set| set.spec.replicas = 0);
        walk.world
            .objects
            .delete_pod_tracker
            .fail_after(1, injected);
        assert_injected(walk.scale_down(invariants::monotonic).await);
        walk.reread();
        walk.scale_down(invariants::monotonic).await.unwrap();
        walk.reread();
        assert_eq!(walk.counts(), [0, 0, 0]);
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
    let run = Run::walks().next().unwrap();
    let walk = run.stored(set(3));
    if sync_fails {
        walk.world
            .objects
            .create_pod_tracker
            .fail_after(0, sync_error);
    }
    if status_fails {
        walk.world.status.update_tracker.fail_after(0, status_error);
    }
    let outcome = walk.world.reconcile(&walk.set, &[]).await;
    assert_eq!(walk.world.status.update_tracker.requests(), 1);
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
