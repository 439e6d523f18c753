//! A last look at the set before claims are given to pods that are to go.

use statefulset_controller_util::controller_ref_manager::SetReader;
use statefulset_controller_util::stateful_set::StatefulSet;
use tokio::sync::OnceCell;

/// Reads the set live before the first write of a sync that gives a claim a pod as owner: such a
/// claim is deleted with the pod, so a decision on an outdated copy of the set would lose data.
///
/// One check is made per sync, its outcome kept.
#[derive(Debug, Default)]
pub struct LiveSetCheck(OnceCell<Result<(), String>>);

impl LiveSetCheck {
    /// Makes the check for a sync.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the live set is the one that the sync decides on, at the same generation and not
    /// being deleted.
    ///
    /// # Errors
    ///
    /// What is different, or why the set can't be read.
    pub async fn passes(&self, reader: &dyn SetReader, set: &StatefulSet) -> Result<(), String> {
        self.0.get_or_init(|| check(reader, set)).await.clone()
    }
}

async fn check(reader: &dyn SetReader, set: &StatefulSet) -> Result<(), String> {
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
