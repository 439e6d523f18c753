//! A set with its desired pods, and what an update gives them.

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::{StatefulSet, UpdateStrategyType};
use statefulset_pod_control::PodSlot;

/// A set with its desired pods, and what an update gives them.
#[derive(Clone, Copy)]
pub struct Rollout<'a> {
    /// The set.
    pub set: &'a StatefulSet,
    /// Its desired pods, by index.
    pub desired: &'a [PodSlot],
    /// Name of the revision that the update gives.
    pub update_revision: &'a str,
    /// Maximum number of unavailable pods during the update.
    pub max_unavailable: usize,
    /// Current time.
    pub now: Timestamp,
}

impl Rollout<'_> {
    /// Returns true if the update replaces this pod sooner or later. Under `OnDelete` it replaces none.
    pub fn reaches(self, slot: &PodSlot) -> bool {
        self.set.spec.update_strategy.strategy_type != UpdateStrategyType::OnDelete
            && !slot.ordinal().is_below(self.set, partition(self.set))
            && slot.revision() != self.update_revision
    }

    /// Returns true if the update replaces this pod, and its replacement gets the update's revision.
    pub fn replaces(self, slot: &PodSlot) -> bool {
        is_rolling(self.set)
            && self.reaches(slot)
            && !slot.ordinal().keeps_current_revision(self.set)
            && slot.existing().is_some_and(|pod| !pod.is_terminating())
    }

    /// Returns true if as many pods are being replaced as may be unavailable: terminating ones, and
    /// unavailable ones of the update's revision. A missing pod counts in a `Parallel` set alone: in an
    /// ordered one it may wait for the very pod that is to be replaced.
    pub fn is_full(self) -> bool {
        let seconds = self.set.spec.min_ready_seconds;
        let is_in_flight = |slot: &&PodSlot| match slot.existing() {
            None => self.set.spec.allows_burst(),
            Some(pod) => {
                pod.is_terminating()
                    || (slot.revision() == self.update_revision
                        && slot.is_unavailable(seconds, self.now))
            }
        };
        self.desired.iter().filter(is_in_flight).count() >= self.max_unavailable
    }
}

/// Returns the lowest index that an update reaches.
pub(crate) fn partition(set: &StatefulSet) -> i32 {
    let rolling_update = set.spec.update_strategy.rolling_update.as_ref();
    rolling_update.map_or(0, |it| it.partition)
}

/// Returns true if the controller replaces the set's pods one after another: such a rollout can be
/// repaired, and can end early.
pub(crate) fn is_rolling(set: &StatefulSet) -> bool {
    use UpdateStrategyType::{OnDelete, Other, Recreate, RollingUpdate};
    match set.spec.update_strategy.strategy_type {
        RollingUpdate | Other => true,
        OnDelete | Recreate => false,
    }
}
