//! A set with its desired pods, and what an update gives them.

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::{StatefulSet, UpdateStrategyType};
use statefulset_pod_control::PodSlot;

use crate::in_place::mark::is_marked;

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

    /// Returns true if as many pods are being updated as may be unavailable.
    pub fn is_full(self) -> bool {
        // A pod in flight that isn't ready may be the very pod that is to be replaced.
        let is_in_flight = |slot: &PodSlot| {
            let pod = slot.existing().filter(|pod| pod.is_running_and_ready());
            pod.is_some_and(|pod| is_marked(pod))
        };
        let slots = self.desired.iter();
        let updating = slots.filter(|slot| self.is_down(slot) || is_in_flight(slot));
        updating.count() >= self.max_unavailable
    }

    /// Returns true if this pod is down for the update: a terminating one, or an unavailable one of the
    /// update's revision. A missing pod counts in a `Parallel` set alone: in an ordered one it may wait
    /// for the very pod that is to be replaced.
    pub fn is_down(self, slot: &PodSlot) -> bool {
        let seconds = self.set.spec.min_ready_seconds;
        match slot.existing() {
            None => self.set.spec.allows_burst(),
            Some(pod) => {
                pod.is_terminating()
                    || (slot.revision() == self.update_revision
                        && slot.is_unavailable(seconds, self.now))
            }
        }
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
