//! Turns of tests in a shared cluster: each test runs a controller for the whole cluster, and two
//! controllers must never work on the same sets.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

/// Time between two attempts to start the turn.
const POLL: Duration = Duration::from_millis(100);

/// Exclusive use of the cluster until dropped.
#[derive(Debug)]
pub struct Turn {
    /// File lock between tests of one or several processes; the system releases it however the test
    /// ends.
    _lock: File,
}

impl Turn {
    /// Waits until no other test on this machine has its turn.
    ///
    /// # Panics
    ///
    /// Panics if the lock file can't be opened.
    pub async fn take() -> Self {
        Self::take_by(&std::env::temp_dir().join("statefulset-tests-existing-cluster.lock")).await
    }

    async fn take_by(path: &Path) -> Self {
        let file = File::options().create(true).append(true).open(path);
        let lock = file.unwrap_or_else(|error| panic!("open {}: {error}", path.display()));
        loop {
            match lock.try_lock() {
                Ok(()) => return Self { _lock: lock },
                Err(TryLockError::WouldBlock) => sleep(POLL).await,
                Err(TryLockError::Error(error)) => panic!("lock {}: {error}", path.display()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn next_turn_starts_when_the_previous_one_ends() {
        let name = format!("statefulset-tests-{}.lock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let first = Turn::take_by(&path).await;
        let second = async || tokio::time::timeout(POLL * 10, Turn::take_by(&path)).await;
        assert!(second().await.is_err());
        drop(first);
        assert!(second().await.is_ok());
        std::fs::remove_file(&path).expect("the file exists");
    }
}
