//! Turns in a cluster that was there before: each test brings a controller for the whole cluster,
//! and two of them must never work on the same sets.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

/// How often is asked whether the one before has ended.
const POLL: Duration = Duration::from_millis(100);

/// The cluster is one test's until this is dropped.
#[derive(Debug)]
pub struct Turn {
    /// Tests of one process and of several exclude each other by it, and the system frees it
    /// whatever becomes of the test.
    _lock: File,
}

impl Turn {
    /// Waits until no other test on this machine has its turn.
    ///
    /// # Panics
    ///
    /// The file that is locked can't be opened.
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
    async fn the_next_turn_begins_when_the_one_before_ends() {
        let name = format!("statefulset-tests-{}.lock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let first = Turn::take_by(&path).await;
        let second = async || tokio::time::timeout(POLL * 10, Turn::take_by(&path)).await;
        assert!(second().await.is_err());
        drop(first);
        assert!(second().await.is_ok());
        std::fs::remove_file(&path).expect("the file is there");
    }
}
