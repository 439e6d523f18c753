//! Reasons for a sync to stop early.

use statefulset_opt_ins::{Awaited, Blocked, Cause, Wait};

#[cfg(test)]
mod tests;

/// Reason for a sync to stop early, with the name of the pod that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Waiting {
    /// The set no longer exists.
    #[error("set no longer exists")]
    SetGone,
    /// The user must fix the set's selector, which has this error.
    #[error("the set's selector cannot be used: {0}")]
    InvalidSelector(Box<str>),
    /// The set is being deleted: the garbage collector deletes its pods.
    #[error("set is being deleted")]
    SetDeleted,
    /// A pod in a terminal phase must be removed before it is replaced.
    #[error("pod {0} is in a terminal phase and must be removed first")]
    PodRemoval(Box<str>),
    /// Under `Recreate`, pods of an earlier revision were deleted and must be removed before any
    /// pod is created. Holds the first of them.
    #[error("pod {0} has an old revision and must be removed before pods are created")]
    OldPodRemoval(Box<str>),
    /// A claim of an earlier pod of this name must be removed before the pod is created.
    #[error("claim {claim} of an earlier pod {pod} must be removed first")]
    StaleClaim {
        /// The pod.
        pod: Box<str>,
        /// The claim.
        claim: Box<str>,
    },
    /// A pod was created and must become available before the next one.
    #[error("pod {0} was created")]
    PodCreated(Box<str>),
    /// A pod is terminating.
    #[error("pod {0} is terminating")]
    PodTerminating(Box<str>),
    /// A pod isn't running and ready.
    #[error("pod {0} is not running and ready")]
    PodNotReady(Box<str>),
    /// A pod has not been ready for `minReadySeconds`.
    #[error("pod {0} has not been ready for minReadySeconds")]
    PodNotAvailable(Box<str>),
    /// A condemned pod was deleted and must be removed before the next one is deleted.
    #[error("pod {0} was deleted to scale down")]
    ScaledDown(Box<str>),
    /// A condemned pod is unhealthy, but another pod became unavailable first.
    #[error("pod {pod} is unhealthy and cannot be deleted before pod {unavailable} is available")]
    ScaleDownBlocked {
        /// The condemned pod.
        pod: Box<str>,
        /// The first unavailable pod.
        unavailable: Box<str>,
    },
    /// An outdated pod was deleted and must be recreated before the next one is deleted.
    #[error("pod {0} was deleted for an update")]
    PodUpdated(Box<str>),
    /// An updated pod must become available before the next one is updated.
    #[error("pod {0} is not available yet")]
    UpdatedPodUnavailable(Box<str>),
    /// The maximum number of pods is unavailable.
    #[error("{unavailable} pods are unavailable, first {pod}, of at most {max_unavailable}")]
    UnavailableBudget {
        /// The first unavailable pod.
        pod: Box<str>,
        /// Number of unavailable pods.
        unavailable: usize,
        /// Maximum number of unavailable pods.
        max_unavailable: usize,
    },
    /// An opt-in of the set makes it wait.
    #[error("{0}")]
    OptIn(#[from] Wait),
    /// The user must delete outdated pods. Holds the first of them.
    #[error("pod {0} has an old revision; delete it to update it")]
    PodDeletionByUser(Box<str>),
}

impl Waiting {
    /// Returns the pod that the set waits for, if any.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::PodRemoval(pod)
            | Self::OldPodRemoval(pod)
            | Self::StaleClaim { pod, .. }
            | Self::PodCreated(pod)
            | Self::PodTerminating(pod)
            | Self::PodNotReady(pod)
            | Self::PodNotAvailable(pod)
            | Self::ScaledDown(pod)
            | Self::ScaleDownBlocked { pod, .. }
            | Self::PodUpdated(pod)
            | Self::UpdatedPodUnavailable(pod)
            | Self::UnavailableBudget { pod, .. }
            | Self::PodDeletionByUser(pod) => Some(pod),
            Self::OptIn(wait) => Some(wait.pod()),
            Self::SetGone | Self::InvalidSelector(_) | Self::SetDeleted => None,
        }
    }

    /// Returns what blocks the set's rollout, if that may be a pod to replace.
    pub(crate) fn blocked(&self) -> Option<Blocked<'_>> {
        match self {
            Self::PodNotReady(pod) => Some(Blocked::ByPod(pod)),
            Self::UnavailableBudget { .. } => Some(Blocked::ByBudget),
            _ => None,
        }
    }

    /// Returns what the set waits for, for its conditions.
    pub(crate) fn awaited(&self) -> Awaited<'_> {
        match self {
            Self::OptIn(wait) => wait.into(),
            Self::PodDeletionByUser(_) => Awaited::Other(Cause::OnDelete),
            Self::PodTerminating(_) => Awaited::Other(Cause::Terminating),
            Self::PodNotAvailable(_) => Awaited::Other(Cause::MinReadySeconds),
            Self::PodNotReady(pod)
            | Self::UpdatedPodUnavailable(pod)
            | Self::ScaleDownBlocked {
                unavailable: pod, ..
            } => Awaited::Pod(pod, Cause::PodStarting),
            Self::UnavailableBudget { pod, .. } => Awaited::Pod(pod, Cause::UnavailableBudget),
            _ => Awaited::Other(Cause::InProgress),
        }
    }
}
