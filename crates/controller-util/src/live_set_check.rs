//! Live read of the set before a write that can delete a claim.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::error::Error as ApiError;
use tokio::sync::{AcquireError, Mutex, Semaphore, SemaphorePermit};

use crate::controller_ref_manager::SetReader;
use crate::stateful_set::StatefulSet;

#[cfg(test)]
mod tests;

/// Maximum number of writes that share one live read. Thousands of writes can wait for the client's
/// rate limit; the last would run minutes after the read.
const WRITES_PER_READ_MAX: usize = 10;

/// Reads the set live before each write of a sync that leads to a claim's deletion: a new owner of
/// the claim, or the deletion of such an owner. With an outdated copy of the set, such a write
/// could lose data.
///
/// Concurrent calls share a live read; no call uses the result of a read that started before the
/// call. After the first failed check, no call of the sync reads again.
#[derive(Debug)]
pub struct LiveSetCheck {
    turns: Semaphore,
    /// Number of live reads started.
    begun: AtomicU64,
    /// Number and result of the last live read.
    last: Mutex<(u64, Result<(), Arc<LiveSetError>>)>,
}

/// Reason why the live set forbids a write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveSetError {
    /// The live set can't be read.
    #[error("can't read StatefulSet {key}: {source}")]
    Read {
        /// The set.
        key: ObjectKey,
        /// The API server's error.
        #[source]
        source: ApiError,
    },
    /// The live set has the same name but another uid.
    #[error("StatefulSet {key} was recreated: uid {found} instead of {desired}")]
    Recreated {
        /// The set.
        key: ObjectKey,
        /// UID of the live set.
        found: Box<str>,
        /// UID of the sync's set.
        desired: Box<str>,
    },
    /// The live set is being deleted.
    #[error("StatefulSet {key} is being deleted")]
    Deleted {
        /// The set.
        key: ObjectKey,
    },
    /// The live set has another generation.
    #[error("StatefulSet {key} changed: generation {found} instead of {desired}")]
    Changed {
        /// The set.
        key: ObjectKey,
        /// Generation of the live set.
        found: i64,
        /// Generation of the sync's set.
        desired: i64,
    },
    /// The check was closed.
    #[error("{0}")]
    Closed(#[from] AcquireError),
}

impl Default for LiveSetCheck {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(WRITES_PER_READ_MAX),
            begun: AtomicU64::default(),
            last: Mutex::new((0, Ok(()))),
        }
    }
}

impl LiveSetCheck {
    /// Checks that the live set is the sync's set, has the same generation, and isn't being
    /// deleted. The permit allows one write; it is held until the write is done, so that a later
    /// call reads again.
    ///
    /// # Errors
    ///
    /// The difference in the live set, or the failure to read it.
    pub async fn passes(
        &self,
        reader: &dyn SetReader,
        set: &StatefulSet,
    ) -> Result<SemaphorePermit<'_>, Arc<LiveSetError>> {
        let permit = self.turns.acquire().await;
        let permit = permit.map_err(LiveSetError::from)?;
        let begun = self.begun.load(Ordering::Relaxed);
        let mut last = self.last.lock().await;
        if last.0 <= begun && last.1.is_ok() {
            // The batch's other calls can join this live read.
            tokio::task::yield_now().await;
            let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            *last = (
                number,
                compare_with_live(reader, set).await.map_err(Arc::new),
            );
        }
        last.1.clone().map(|()| permit)
    }
}

async fn compare_with_live(reader: &dyn SetReader, set: &StatefulSet) -> Result<(), LiveSetError> {
    let key = set.key();
    let live = match reader.read_stateful_set(&key).await {
        Ok(live) => live,
        Err(source) => return Err(LiveSetError::Read { key, source }),
    };
    if live.uid() != set.uid() {
        let (found, desired) = (live.uid().into(), set.uid().into());
        return Err(LiveSetError::Recreated {
            key,
            found,
            desired,
        });
    }
    if live.is_deleting() {
        return Err(LiveSetError::Deleted { key });
    }
    let (found, desired) = (live.metadata.generation, set.metadata.generation);
    if found != desired {
        return Err(LiveSetError::Changed {
            key,
            found,
            desired,
        });
    }
    Ok(())
}
