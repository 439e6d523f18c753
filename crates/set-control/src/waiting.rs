//! Reasons for a sync to stop early.

use std::fmt;

#[cfg(test)]
mod tests;

/// Reason for a sync to stop early, with the name of the pod that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The set no longer exists.
    SetGone,
    /// The user must fix the set's selector, which has this error.
    InvalidSelector(Box<str>),
    /// The set is being deleted: the garbage collector deletes its pods.
    SetDeleted,
    /// A pod in a terminal phase must be removed before it is replaced.
    PodRemoval(Box<str>),
    /// Under `Recreate`, pods of an earlier revision were deleted and must be removed before any
    /// pod is created. Holds the first of them.
    OldPodRemoval(Box<str>),
    /// A claim of an earlier pod of this name must be removed before the pod is created.
    StaleClaim {
        /// The pod.
        pod: Box<str>,
        /// The claim.
        claim: Box<str>,
    },
    /// A pod was created and must become available before the next one.
    PodCreated(Box<str>),
    /// A pod is terminating.
    PodTerminating(Box<str>),
    /// A pod isn't running and ready.
    PodNotReady(Box<str>),
    /// A pod has not been ready for `minReadySeconds`.
    PodNotAvailable(Box<str>),
    /// A condemned pod was deleted and must be removed before the next one is deleted.
    ScaledDown(Box<str>),
    /// A condemned pod is unhealthy, but another pod became unavailable first.
    ScaleDownBlocked {
        /// The condemned pod.
        pod: Box<str>,
        /// The first unavailable pod.
        unavailable: Box<str>,
    },
    /// An outdated pod was deleted and must be recreated before the next one is deleted.
    PodUpdated(Box<str>),
    /// An updated pod must become available before the next one is updated.
    UpdatedPodUnavailable(Box<str>),
    /// The maximum number of pods is unavailable.
    UnavailableBudget {
        /// The first unavailable pod.
        pod: Box<str>,
        /// Number of unavailable pods.
        unavailable: usize,
        /// Maximum number of unavailable pods.
        max_unavailable: usize,
    },
    /// The user must delete outdated pods. Holds the first of them.
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
            Self::SetGone | Self::InvalidSelector(_) | Self::SetDeleted => None,
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetGone => f.write_str("set no longer exists"),
            Self::InvalidSelector(error) => {
                write!(f, "the set's selector cannot be used: {error}")
            }
            Self::SetDeleted => f.write_str("set is being deleted"),
            Self::PodRemoval(pod) => {
                write!(
                    f,
                    "pod {pod} is in a terminal phase and must be removed first"
                )
            }
            Self::OldPodRemoval(pod) => {
                write!(
                    f,
                    "pod {pod} has an old revision and must be removed before pods are created"
                )
            }
            Self::StaleClaim { pod, claim } => {
                write!(
                    f,
                    "claim {claim} of an earlier pod {pod} must be removed first"
                )
            }
            Self::PodCreated(pod) => write!(f, "pod {pod} was created"),
            Self::PodTerminating(pod) => write!(f, "pod {pod} is terminating"),
            Self::PodNotReady(pod) => write!(f, "pod {pod} is not running and ready"),
            Self::PodNotAvailable(pod) => {
                write!(f, "pod {pod} has not been ready for minReadySeconds")
            }
            Self::ScaledDown(pod) => write!(f, "pod {pod} was deleted to scale down"),
            Self::ScaleDownBlocked { pod, unavailable } => write!(
                f,
                "pod {pod} is unhealthy and cannot be deleted before pod {unavailable} is available"
            ),
            Self::PodUpdated(pod) => write!(f, "pod {pod} was deleted for an update"),
            Self::UpdatedPodUnavailable(pod) => write!(f, "pod {pod} is not available yet"),
            Self::UnavailableBudget {
                pod,
                unavailable,
                max_unavailable,
            } => write!(
                f,
                "{unavailable} pods are unavailable, first {pod}, of at most {max_unavailable}"
            ),
            Self::PodDeletionByUser(pod) => {
                write!(
                    f,
                    "pod {pod} has an old revision and is updated after its deletion"
                )
            }
        }
    }
}
