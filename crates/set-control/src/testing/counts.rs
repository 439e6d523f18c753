//! The counts in a set's status.

use statefulset_controller_util::stateful_set::StatefulSetStatus;

/// The five counts of pods in a set's status. Begin with [`Counts::all`], and name the ones that
/// differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    replicas: i32,
    ready: i32,
    available: i32,
    current: i32,
    updated: i32,
}

impl Counts {
    /// Returns counts with the same value.
    pub fn all(count: i32) -> Self {
        Self {
            replicas: count,
            ready: count,
            available: count,
            current: count,
            updated: count,
        }
    }

    /// Returns the counts of a status.
    pub fn of(status: &StatefulSetStatus) -> Self {
        Self {
            replicas: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            current: status.current_replicas,
            updated: status.updated_replicas,
        }
    }

    /// Sets `readyReplicas`.
    #[must_use]
    pub fn ready(self, ready: i32) -> Self {
        Self { ready, ..self }
    }

    /// Sets `availableReplicas`.
    #[must_use]
    pub fn available(self, available: i32) -> Self {
        Self { available, ..self }
    }

    /// Sets `currentReplicas`.
    #[must_use]
    pub fn current(self, current: i32) -> Self {
        Self { current, ..self }
    }

    /// Sets `updatedReplicas`.
    #[must_use]
    pub fn updated(self, updated: i32) -> Self {
        Self { updated, ..self }
    }
}
