//! Reasons of opt-ins for a sync to stop early.

use std::time::Duration;

use jiff::Timestamp;

/// Time between two attempts of a refused eviction.
const EVICTION_RETRY: Duration = Duration::from_secs(30);

/// Reason of an opt-in for a sync to stop early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wait {
    /// A broken outdated pod blocked the rollout and was replaced.
    #[error("pod {0} blocked the rollout and was replaced")]
    BlockingPodReplaced(Box<str>),
    /// A pod was restarted so that the file system of its volume grows.
    #[error("pod {0} was restarted so that its volume grows")]
    RestartedForClaim(Box<str>),
    /// The eviction of an outdated pod that blocks the rollout was refused.
    #[error("pod {pod} blocks the rollout, and its eviction was refused: {reason}")]
    EvictionRefused {
        /// The pod.
        pod: Box<str>,
        /// The server's reason.
        reason: Box<str>,
    },
    /// The gate of a pod that is to be removed holds.
    #[error("pod {pod} is not removed before its gate {gate} is lifted")]
    RemovalGate {
        /// The pod.
        pod: Box<str>,
        /// The gate.
        gate: Box<str>,
        /// Time at which the gate no longer holds, if that is limited.
        opens_at: Option<Timestamp>,
    },
    /// A running pod is being updated.
    #[error("pod {0} is updated in place")]
    InPlaceUpdate(Box<str>),
}

impl Wait {
    /// Returns the delay after which the sync tries again, if nothing else may wake the set.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::EvictionRefused { .. } => Some(EVICTION_RETRY),
            Self::BlockingPodReplaced(_)
            | Self::RestartedForClaim(_)
            | Self::RemovalGate { .. }
            | Self::InPlaceUpdate(_) => None,
        }
    }

    /// Returns the pod that the set waits for.
    pub fn pod(&self) -> &str {
        match self {
            Self::BlockingPodReplaced(pod)
            | Self::InPlaceUpdate(pod)
            | Self::RestartedForClaim(pod)
            | Self::EvictionRefused { pod, .. }
            | Self::RemovalGate { pod, .. } => pod,
        }
    }
}
