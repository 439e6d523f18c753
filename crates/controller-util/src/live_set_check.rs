//! Live read of the set before a write that can delete a claim.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

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
    last: Mutex<(u64, Result<(), String>)>,
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
    ) -> Result<SemaphorePermit<'_>, String> {
        let permit = self.turns.acquire().await;
        let permit = permit.map_err(|closed| closed.to_string())?;
        let begun = self.begun.load(Ordering::Relaxed);
        let mut last = self.last.lock().await;
        if last.0 <= begun && last.1.is_ok() {
            // The batch's other calls can join this live read.
            tokio::task::yield_now().await;
            let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            *last = (number, compare_with_live(reader, set).await);
        }
        last.1.clone().map(|()| permit)
    }
}

async fn compare_with_live(reader: &dyn SetReader, set: &StatefulSet) -> Result<(), String> {
    let key = set.key();
    let live = reader.read_stateful_set(&key).await;
    let live = live.map_err(|error| format!("can't read StatefulSet {key}: {error}"))?;
    let (found, wanted) = (live.uid(), set.uid());
    if found != wanted {
        return Err(format!(
            "StatefulSet {key} was recreated: uid {found} instead of {wanted}"
        ));
    }
    if live.is_deleting() {
        return Err(format!("StatefulSet {key} is being deleted"));
    }
    let (found, wanted) = (live.metadata.generation, set.metadata.generation);
    if found != wanted {
        return Err(format!(
            "StatefulSet {key} changed: generation {found} instead of {wanted}"
        ));
    }
    Ok(())
}
