//! Reasons for which a sync goes no further.

use std::fmt;

#[cfg(test)]
mod tests;

/// The reason for which a sync goes no further, with the pod that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The set is gone: nothing is left to do.
    SetGone,
    /// The user must fix the set's selector.
    SelectorMended {
        /// The selector's error.
        reason: Box<str>,
    },
    /// The set is being deleted: the garbage collector deletes its pods.
    SetDeleted,
    /// A pod that ended in success or failure must be gone before it is replaced.
    PodRemoval {
        /// The pod.
        pod: Box<str>,
    },
    /// A claim of an earlier pod of this name must be gone before the pod is created.
    StaleClaim {
        /// The pod.
        pod: Box<str>,
        /// The claim.
        claim: Box<str>,
    },
    /// A pod was created and must become available before the next one.
    PodCreated {
        /// The pod.
        pod: Box<str>,
    },
    /// A pod is terminating.
    PodTerminating {
        /// The pod.
        pod: Box<str>,
    },
    /// A pod isn't running and ready.
    PodNotReady {
        /// The pod.
        pod: Box<str>,
    },
    /// A pod has not been ready for `minReadySeconds`.
    PodNotAvailable {
        /// The pod.
        pod: Box<str>,
    },
    /// A pod that is no longer wanted was deleted and must be gone before the next one.
    ScaledDown {
        /// The pod.
        pod: Box<str>,
    },
    /// A pod that is no longer wanted is unhealthy, but another one was so first.
    ScaleDownBlocked {
        /// The pod that is no longer wanted.
        pod: Box<str>,
        /// The first unavailable pod.
        unavailable: Box<str>,
    },
    /// A pod of an old revision was deleted and must come back before the next one.
    PodUpdated {
        /// The pod.
        pod: Box<str>,
    },
    /// An updated pod must become available before the next one is updated.
    UpdatedPodUnavailable {
        /// The pod.
        pod: Box<str>,
    },
    /// The budget of unavailable pods is used.
    UnavailableBudget {
        /// The first unavailable pod.
        pod: Box<str>,
        /// The number of unavailable pods.
        unavailable: usize,
        /// The budget.
        max_unavailable: usize,
    },
    /// The user must delete a pod of an old revision.
    PodDeletionByUser {
        /// The first such pod.
        pod: Box<str>,
    },
}

impl Waiting {
    /// The pod that the set waits for, if any.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::PodRemoval { pod }
            | Self::StaleClaim { pod, .. }
            | Self::PodCreated { pod }
            | Self::PodTerminating { pod }
            | Self::PodNotReady { pod }
            | Self::PodNotAvailable { pod }
            | Self::ScaledDown { pod }
            | Self::ScaleDownBlocked { pod, .. }
            | Self::PodUpdated { pod }
            | Self::UpdatedPodUnavailable { pod }
            | Self::UnavailableBudget { pod, .. }
            | Self::PodDeletionByUser { pod } => Some(pod),
            Self::SetGone | Self::SelectorMended { .. } | Self::SetDeleted => None,
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetGone => f.write_str("set is gone"),
            Self::SelectorMended { reason } => {
                write!(f, "the set's selector cannot be used: {reason}")
            }
            Self::SetDeleted => f.write_str("set is being deleted"),
            Self::PodRemoval { pod } => write!(f, "pod {pod} has ended and must be gone first"),
            Self::StaleClaim { pod, claim } => {
                write!(
                    f,
                    "claim {claim} of an earlier pod {pod} must be gone first"
                )
            }
            Self::PodCreated { pod } => write!(f, "pod {pod} was created"),
            Self::PodTerminating { pod } => write!(f, "pod {pod} is terminating"),
            Self::PodNotReady { pod } => write!(f, "pod {pod} is not running and ready"),
            Self::PodNotAvailable { pod } => {
                write!(f, "pod {pod} has not been ready for minReadySeconds")
            }
            Self::ScaledDown { pod } => write!(f, "pod {pod} was deleted to scale down"),
            Self::ScaleDownBlocked { pod, unavailable } => {
                write!(
                    f,
                    "pod {pod} is unhealthy and cannot go before pod {unavailable} is available"
                )
            }
            Self::PodUpdated { pod } => write!(f, "pod {pod} was deleted to be updated"),
            Self::UpdatedPodUnavailable { pod } => write!(f, "pod {pod} is not available yet"),
            Self::UnavailableBudget {
                pod,
                unavailable,
                max_unavailable,
            } => write!(
                f,
                "{unavailable} pods are unavailable, {pod} the first, {max_unavailable} may be"
            ),
            Self::PodDeletionByUser { pod } => {
                write!(
                    f,
                    "pod {pod} has an old revision and is updated when it is deleted"
                )
            }
        }
    }
}
