//! The receiver of an informer's changes.

use std::sync::Arc;

/// Receives a cache's changes after they are stored. Calls are sequential and must not block.
///
/// Upstream: `cache.ResourceEventHandler`.
pub trait EventHandler<K>: Send + Sync {
    /// Called for a new object. `in_initial_list` is true for objects of the first list.
    fn on_add(&self, object: &Arc<K>, in_initial_list: bool);
    /// Called for a changed object, or for a resync (then both states are the same).
    fn on_update(&self, old: &Arc<K>, new: &Arc<K>);
    /// Called for a deleted object. If `final_state_unknown`, the watch missed the deletion, and
    /// this is the last state seen. Later changes, and other objects of the same name, may have
    /// been missed.
    fn on_delete(&self, object: &Arc<K>, final_state_unknown: bool);
    /// Called after a list other than the first, and after its changes: an object may have come and
    /// gone without any other call. By default it does nothing.
    fn on_relisted(&self) {}
}
