//! Logs start, failure and completion per set.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_apimachinery::object_key::ObjectKey;
use statefulset_set_control::{SyncOutcome, Waiting};
use tokio::time::Instant;

use crate::error::Error;

/// Maximum number of different failures of a set that are remembered.
const TEXTS_MAX: usize = 16;

/// Logs when a set starts moving to its desired state and when it reaches it, and each failure once
/// until a sync succeeds again. Retries are not logged. A set in its desired state takes no memory.
#[derive(Debug, Default)]
pub(crate) struct SyncLog(Mutex<BTreeMap<ObjectKey, Progress>>);

/// Logged state of a set that is not in its desired state.
#[derive(Debug, Default)]
struct Progress {
    begun: Option<Instant>,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    /// Logged failures, the latest last.
    texts: Vec<String>,
    since: Instant,
    tries: u32,
}

impl SyncLog {
    /// Records a successful sync.
    pub(crate) fn synced(&self, key: &ObjectKey, synced: &SyncOutcome) {
        let mut sets = self.sets();
        let mut progress = sets.remove(key).unwrap_or_default();
        if let Some(Failure { since, tries, .. }) = progress.failure.take() {
            let after = seconds(since);
            tracing::info!(%after, failures = tries, "set can be synced again");
        }
        if is_given_up(synced) {
            return;
        }
        let Some(status) = synced.status.as_ref().filter(|_| is_complete(synced)) else {
            if progress.begun.is_none() {
                progress.begun = Some(Instant::now());
                let reason = synced.waiting.as_ref().map(tracing::field::display);
                tracing::info!(reason, "bringing the set to its desired state");
            }
            sets.insert(key.clone(), progress);
            return;
        };
        if let Some(begun) = progress.begun {
            tracing::info!(
                after = %seconds(begun),
                pods = status.replicas,
                revision = %status.update_revision,
                "set is in its desired state"
            );
        }
    }

    /// Records a failed sync that will be retried.
    pub(crate) fn failed(&self, key: &ObjectKey, error: &Error) {
        let is_server_wide = error
            .api_error()
            .is_some_and(statefulset_client::error::Error::is_server_wide);
        if is_server_wide {
            tracing::debug!(%error, "error syncing StatefulSet, requeuing");
            return;
        }
        let text = error.to_string();
        let mut sets = self.sets();
        let progress = sets.entry(key.clone()).or_default();
        let failure = progress.failure.get_or_insert_with(|| Failure {
            texts: Vec::new(),
            since: Instant::now(),
            tries: 0,
        });
        failure.tries += 1;
        if failure.texts.contains(&text) {
            tracing::debug!(%error, tries = failure.tries, "error syncing StatefulSet, requeuing");
            return;
        }
        tracing::error!(%error, "error syncing StatefulSet, requeuing");
        if failure.texts.len() == TEXTS_MAX {
            failure.texts.remove(0);
        }
        failure.texts.push(text);
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if no further sync is needed until someone else acts.
fn is_given_up(synced: &SyncOutcome) -> bool {
    matches!(
        synced.waiting,
        Some(
            Waiting::SetGone
                | Waiting::SetDeleted
                | Waiting::InvalidSelector(..)
                | Waiting::PodDeletionByUser(..)
        )
    )
}

fn is_complete(synced: &SyncOutcome) -> bool {
    let all_ready = |status: &statefulset_controller_util::stateful_set::StatefulSetStatus| {
        status.ready_replicas == status.replicas
    };
    synced.waiting.is_none() && synced.status.as_ref().is_some_and(all_ready)
}

/// Returns the elapsed time in seconds.
fn seconds(since: Instant) -> String {
    format!("{} s", since.elapsed().as_secs())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use statefulset_client::error::Error as ApiError;
    use statefulset_client::fake::CapturedLog;
    use statefulset_controller_util::controller_ref_manager::{CanAdoptError, ClaimError};
    use statefulset_controller_util::live_set_check::LiveSetError;
    use statefulset_controller_util::stateful_set::StatefulSetStatus;
    use tracing::Level;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "web")
    }

    fn synced(ready: i32, replicas: i32, waiting: Option<Waiting>) -> SyncOutcome {
        let status = StatefulSetStatus {
            replicas,
            ready_replicas: ready,
            update_revision: "web-1".into(),
            ..StatefulSetStatus::default()
        };
        let mut outcome = SyncOutcome::default();
        outcome.status = Some(status);
        outcome.waiting = waiting;
        outcome
    }

    fn not_ready() -> Waiting {
        let pod = "web-0".into();
        Waiting::PodNotReady(pod)
    }

    fn failure(err: ApiError) -> Error {
        Error::Update(statefulset_set_control::Error::Status(err))
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn start_and_completion_are_logged_once() {
        let (log, sync_log) = (CapturedLog::at(Level::INFO), SyncLog::default());
        sync_log.synced(&key(), &synced(3, 3, None));
        assert_eq!(
            log.take(),
            [""; 0],
            "a set in its desired state is not logged"
        );
        for ready in 0..3 {
            sync_log.synced(&key(), &synced(ready, 3, Some(not_ready())));
            pass(5).await;
        }
        sync_log.synced(&key(), &synced(2, 3, None));
        sync_log.synced(&key(), &synced(3, 3, None));
        let lines = log.take();
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].starts_with("INFO bringing the set to its desired state reason="));
        assert_eq!(
            lines[1],
            "INFO set is in its desired state after=15 s pods=3 revision=web-1"
        );
        assert!(sync_log.sets().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_is_logged_once() {
        let (log, sync_log) = (CapturedLog::at(Level::INFO), SyncLog::default());
        let quota = || failure(ApiError::api(403, "Forbidden", "exceeded quota"));
        let webhook = || failure(ApiError::api(500, "InternalError", "webhook is down"));
        for _ in 0..10 {
            sync_log.failed(&key(), &quota());
        }
        sync_log.failed(&key(), &webhook());
        sync_log.failed(&key(), &quota());
        pass(8).await;
        sync_log.synced(&key(), &synced(3, 3, None));
        assert_eq!(
            log.take(),
            [
                "ERROR error syncing StatefulSet, requeuing error=exceeded quota",
                "ERROR error syncing StatefulSet, requeuing error=webhook is down",
                "INFO set can be synced again after=8 s failures=12",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn server_wide_failures_are_not_logged_per_set() {
        let (log, sync_log) = (CapturedLog::at(Level::INFO), SyncLog::default());
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        sync_log.failed(
            &key(),
            &failure(ApiError::Transport {
                action: "PUT /".to_owned(),
                source: Box::new(refused),
            }),
        );
        let unauthorized = ApiError::api(401, "Unauthorized", "Unauthorized");
        sync_log.failed(&key(), &failure(unauthorized));
        assert_eq!(log.take(), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn failed_live_read_of_a_set_is_logged_with_the_set() {
        let (log, sync_log) = (CapturedLog::at(Level::INFO), SyncLog::default());
        let unauthorized = || ApiError::api(401, "Unauthorized", "Unauthorized");
        let can_adopt = || CanAdoptError::Read(unauthorized());
        sync_log.failed(&key(), &Error::CanAdoptRevisions(can_adopt()));
        let adopt = ClaimError::Adopt {
            pod: key(),
            uid: "u".into(),
            source: Arc::new(can_adopt()),
        };
        sync_log.failed(&key(), &adopt.into());
        let read = LiveSetError::Read {
            key: key(),
            source: unauthorized(),
        };
        let deletes = statefulset_pod_control::Error::DeletesClaims {
            action: "delete pod web-0".to_owned(),
            source: Arc::new(read),
        };
        let update = statefulset_set_control::Error::from(deletes);
        sync_log.failed(&key(), &update.into());
        let [revisions, pod, claims] = <[String; 3]>::try_from(log.take()).unwrap();
        let cause = "can't recheck DeletionTimestamp: Unauthorized";
        assert!(revisions.ends_with(&format!("can't adopt ControllerRevisions: {cause}")));
        assert!(pod.ends_with(&format!("(u): {cause}")), "{pod}");
        assert!(claims.ends_with(": Unauthorized"), "{claims}");
    }

    #[tokio::test(start_paused = true)]
    async fn missing_set_is_forgotten() {
        let sync_log = SyncLog::default();
        sync_log.synced(&key(), &synced(0, 3, Some(not_ready())));
        sync_log.failed(&key(), &failure(ApiError::api(409, "Conflict", "changed")));
        let gone = Waiting::SetGone.into();
        sync_log.synced(&key(), &gone);
        assert!(sync_log.sets().is_empty());
    }
}
