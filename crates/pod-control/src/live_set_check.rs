//! Live read of the set before a write that can delete a claim.

use std::sync::atomic::{AtomicU64, Ordering};

use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

#[cfg(test)]
mod tests;

/// Writes per live read. Thousands of writes can wait for the client's rate limit; the last would
/// run minutes after the read.
const TURNS: usize = 10;

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
    last: Mutex<Look>,
}

#[derive(Debug)]
struct Look {
    number: u64,
    outcome: Result<(), String>,
}

impl Default for Look {
    /// Returns the state before the first live read.
    fn default() -> Self {
        Self {
            number: 0,
            outcome: Ok(()),
        }
    }
}

/// A passed check. Held until the write is done, so that a later call reads again.
#[derive(Debug)]
pub struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

impl Default for LiveSetCheck {
    fn default() -> Self {
        Self::new()
    }
}

impl LiveSetCheck {
    /// Creates the check for a sync.
    pub fn new() -> Self {
        Self {
            turns: Semaphore::new(TURNS),
            begun: AtomicU64::default(),
            last: Mutex::default(),
        }
    }

    /// Checks that the live set is the sync's set, has the same generation, and isn't being
    /// deleted. The turn allows one write.
    ///
    /// # Errors
    ///
    /// The difference in the live set, or the failure to read it.
    pub async fn passes(
        &self,
        reader: &dyn SetReader,
        set: &StatefulSet,
    ) -> Result<Turn<'_>, String> {
        // The semaphore is never closed.
        let turn = Turn {
            _permit: self.turns.acquire().await.ok(),
        };
        self.look_passes(reader, set).await.map(|()| turn)
    }

    async fn look_passes(&self, reader: &dyn SetReader, set: &StatefulSet) -> Result<(), String> {
        let begun = self.begun.load(Ordering::Relaxed);
        let mut last = self.last.lock().await;
        if last.number > begun || last.outcome.is_err() {
            return last.outcome.clone();
        }
        // The batch's other calls can join this live read.
        tokio::task::yield_now().await;
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let outcome = look(reader, set).await;
        *last = Look { number, outcome };
        last.outcome.clone()
    }
}

async fn look(reader: &dyn SetReader, set: &StatefulSet) -> Result<(), String> {
    let key = set.key();
    let live = reader
        .read_stateful_set(&key)
        .await
        .map_err(|error| format!("can't read StatefulSet {key}: {error}"))?;
    if live.uid() != set.uid() {
        return Err(format!(
            "StatefulSet {key} was recreated: uid {} instead of {}",
            live.uid(),
            set.uid()
        ));
    }
    if live.is_deleting() {
        return Err(format!("StatefulSet {key} is being deleted"));
    }
    if live.metadata.generation != set.metadata.generation {
        return Err(format!(
            "StatefulSet {key} changed: generation {} instead of {}",
            live.metadata.generation, set.metadata.generation
        ));
    }
    Ok(())
}
