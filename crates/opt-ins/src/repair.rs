//! The pod to replace in a rollout that it blocks.

use std::sync::Arc;
use std::time::Duration;

use statefulset_controller_util::pod::Pod;
use statefulset_pod_control::PodSlot;

use crate::due::{after, time_left};
use crate::rollout::Rollout;
use crate::values::RepairMethod;

/// The repair of a blocked rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The way in which the pod is replaced.
    pub method: RepairMethod,
    /// Time for which a pod without visible trouble may be unready.
    pub after: Duration,
}

/// The decision about a pod that blocks a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It isn't replaced.
    Never,
    /// It is replaced after this time, unless it gets ready.
    Later(Duration),
    /// It is replaced now.
    Now(Arc<Pod>),
}

impl Repair {
    /// Decides about the pod in this slot, for which the rollout waits.
    ///
    /// Only a pod that the update replaces anyway is replaced: of another revision, and not below
    /// the partition. Its replacement has the update's revision, so no pod is replaced twice for
    /// one revision.
    pub fn decide(&self, rollout: Rollout<'_>, slot: &PodSlot) -> Decision {
        let pod = slot.existing().filter(|_| rollout.replaces(slot));
        let unready = pod.and_then(|pod| Some((pod, pod.unready.as_deref()?)));
        let Some((pod, unready)) = unready else {
            return Decision::Never;
        };
        if unready.trouble.is_some() {
            return Decision::Now(Arc::clone(pod));
        }
        let Some(since) = unready.since else {
            return Decision::Never;
        };
        match time_left(after(since, self.after), rollout.now) {
            Some(left) => Decision::Later(left),
            None => Decision::Now(Arc::clone(pod)),
        }
    }
}
