//! A live look at the set before a write that could cost a claim.

use std::sync::atomic::{AtomicU64, Ordering};

use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

#[cfg(test)]
mod tests;

/// How many writes may follow one look: with thousands that wait for the client's rate limit, the
/// last would come minutes after the look.
const TURNS: usize = 10;

/// Reads the set live before each write of a sync that dooms a claim: one that gives the claim an
/// owner, with which it is deleted, or one that deletes such an owner. Decided on an outdated copy
/// of the set, such a write would lose data.
///
/// Calls that wait for a look at the same time share one; a call never takes the outcome of a look
/// that began before it. The first look that doesn't pass is the last one of its sync.
#[derive(Debug)]
pub struct LiveSetCheck {
    turns: Semaphore,
    /// How many looks have begun.
    begun: AtomicU64,
    last: Mutex<Look>,
}

#[derive(Debug)]
struct Look {
    number: u64,
    outcome: Result<(), String>,
}

impl Default for Look {
    /// No look so far.
    fn default() -> Self {
        Self {
            number: 0,
            outcome: Ok(()),
        }
    }
}

/// A look that passed. Held until the write is done, so that the next call looks again.
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
    /// Makes the check for a sync.
    pub fn new() -> Self {
        Self {
            turns: Semaphore::new(TURNS),
            begun: AtomicU64::default(),
            last: Mutex::default(),
        }
    }

    /// Whether the live set is the one that the sync decides on, at the same generation and not
    /// being deleted. The turn is for one write.
    ///
    /// # Errors
    ///
    /// What is different, or why the set can't be read.
    pub async fn passes(
        &self,
        reader: &dyn SetReader,
        set: &StatefulSet,
    ) -> Result<Turn<'_>, String> {
        // Nobody closes the semaphore.
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
        // The other calls of a batch get their turn to join this look.
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
