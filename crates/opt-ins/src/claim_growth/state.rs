//! The state of one claim on its way to the desired size.

use statefulset_controller_util::claim::{Claim, ClaimPhase};

/// The state of one claim on its way to the desired size, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ClaimState {
    /// The controller has no right to write claims.
    MissingPermission,
    /// The storage provider will never expand the volume to this size.
    Infeasible,
    /// The storage provider failed to expand the volume, and tries again.
    ProviderError,
    /// The storage class forbids to expand volumes.
    ClassForbids,
    /// A quota forbids the size.
    QuotaExceeded,
    /// The API server refused the size for another reason.
    Refused,
    /// The volume of the claim is lost.
    ClaimLost,
    /// A claim of this name exists that isn't the set's.
    NotOfSet,
    /// The claim is larger than desired.
    ShrinkRefused,
    /// The volume waits for a restart of the pod, for which the set doesn't ask.
    AwaitsPodRestart,
    /// The volume waits for a restart of the pod, which the controller makes.
    PodRestart,
    /// The size is requested, and the volume is still smaller.
    Growing,
    /// The size isn't requested yet: other pods' claims come first.
    Queued,
    /// The claim has no volume yet, and only a bound one can grow.
    Unbound,
    /// The claim is being deleted.
    Terminating,
    /// The claim has the size.
    Resized,
}

impl ClaimState {
    /// All states.
    pub const ALL: [Self; 16] = [
        Self::MissingPermission,
        Self::Infeasible,
        Self::ProviderError,
        Self::ClassForbids,
        Self::QuotaExceeded,
        Self::Refused,
        Self::ClaimLost,
        Self::NotOfSet,
        Self::ShrinkRefused,
        Self::AwaitsPodRestart,
        Self::PodRestart,
        Self::Growing,
        Self::Queued,
        Self::Unbound,
        Self::Terminating,
        Self::Resized,
    ];

    /// Returns the state of a stored claim. `restarts` is true if the controller restarts pods whose
    /// volumes wait for that.
    pub fn of(claim: &Claim, wanted: i64, restarts: bool) -> Self {
        let storage = claim.storage;
        let is_bound = storage.phase == ClaimPhase::Bound;
        if claim.deletion_timestamp.is_some() {
            Self::Terminating
        } else if storage.phase == ClaimPhase::Lost {
            Self::ClaimLost
        } else if storage.request > wanted {
            Self::ShrinkRefused
        } else if storage.request < wanted {
            if is_bound {
                Self::Queued
            } else {
                Self::Unbound
            }
        } else if !storage.is_expanding() {
            // A claim without a volume gets one of this size.
            Self::Resized
        } else if storage.infeasible {
            Self::Infeasible
        } else if storage.awaits_node {
            if restarts {
                Self::PodRestart
            } else {
                Self::AwaitsPodRestart
            }
        } else if storage.failed {
            Self::ProviderError
        } else {
            Self::Growing
        }
    }

    /// Returns the reason in the condition.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::MissingPermission => "MissingPermission",
            Self::Infeasible => "Infeasible",
            Self::ProviderError => "ProviderError",
            Self::ClassForbids => "ClassForbids",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::Refused => "Refused",
            Self::ClaimLost => "ClaimLost",
            Self::NotOfSet => "NotOfSet",
            Self::ShrinkRefused => "ShrinkRefused",
            Self::AwaitsPodRestart => "AwaitsPodRestart",
            Self::PodRestart => "PodRestart",
            Self::Growing => "Growing",
            Self::Queued => "Queued",
            Self::Unbound => "Unbound",
            Self::Terminating => "Terminating",
            Self::Resized => "Resized",
        }
    }

    /// Returns the state with this reason.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.reason() == reason)
    }

    /// Returns true if time brings the claim on, and no person must act.
    pub const fn passes(self) -> bool {
        matches!(
            self,
            Self::PodRestart | Self::Growing | Self::Queued | Self::Unbound | Self::Terminating
        )
    }

    /// Returns the state in words, for the condition's message.
    pub const fn description(self) -> &'static str {
        match self {
            Self::MissingPermission => "the controller may not update claims",
            Self::Infeasible => "the storage provider can't expand the volume to this size",
            Self::ProviderError => "the storage provider failed to expand the volume",
            Self::ClassForbids => "the storage class forbids expansion",
            Self::QuotaExceeded => "a quota forbids the size",
            Self::Refused => "the API server refused the size",
            Self::ClaimLost => "its volume is lost",
            Self::NotOfSet => "it isn't a claim of this set",
            Self::ShrinkRefused => "it is larger, and claims never shrink",
            Self::AwaitsPodRestart => "the file system grows when the pod restarts",
            Self::PodRestart => "the file system grows when the controller has restarted the pod",
            Self::Growing => "the volume is being expanded",
            Self::Queued => "claims of other pods come first",
            Self::Unbound => "it isn't bound yet",
            Self::Terminating => "it is being deleted",
            Self::Resized => "it has the size",
        }
    }

    /// Returns true if an event of the claim may bring it on.
    pub const fn awaits_event(self) -> bool {
        matches!(
            self,
            Self::Infeasible
                | Self::ProviderError
                | Self::AwaitsPodRestart
                | Self::PodRestart
                | Self::Growing
                | Self::Unbound
        )
    }
}

/// Returns true if a claim's volume is being expanded, also to a smaller size than the desired one. Such
/// a claim takes part of the budget. One that will never be expanded, or that waits for a restart which
/// the controller doesn't make, doesn't.
pub(super) fn is_in_flight(claim: &Claim, restarts: bool) -> bool {
    let storage = claim.storage;
    storage.is_expanding()
        && claim.deletion_timestamp.is_none()
        && !storage.infeasible
        && (restarts || !storage.awaits_node)
}
