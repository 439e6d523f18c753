//! Causes for which a set isn't complete, with stable names.

use statefulset_controller_util::pod::ContainerTrouble;

/// The meaning of a cause for the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseState {
    /// Nothing is left to do.
    Settled,
    /// A user's choice holds the rest back.
    Held,
    /// Work goes on, or time alone completes the next step.
    Working,
    /// Waiting doesn't help: a person must act.
    Stuck,
}

/// The cause for which a set isn't complete. The plugin's explanations, the conditions and the
/// documentation share its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing is left to do.
    Settled,
    /// Pods are created, replaced or removed.
    InProgress,
    /// A pod is terminating.
    Terminating,
    /// A pod isn't ready, for no known trouble.
    PodStarting,
    /// A ready pod must stay ready for `minReadySeconds`.
    MinReadySeconds,
    /// As many pods are unavailable as may be.
    UnavailableBudget,
    /// A sync failed and is repeated.
    RetryBackOff,
    /// A pod of an older revision blocks the rollout and is about to be replaced.
    Repair,
    /// The eviction of a pod that blocks the rollout was refused.
    EvictionRefused,
    /// A pod's removal waits for its gate.
    RemovalGate,
    /// A running pod gets other resources.
    InPlaceUpdate,
    /// The image of a container can't be pulled.
    ImagePull,
    /// A container can't be created or started as configured.
    ContainerConfig,
    /// A container ends again and again.
    CrashLoop,
    /// A broken pod of an older revision blocks the rollout.
    OldRevisionBlocks,
    /// The partition keeps a broken pod at its revision.
    PartitionKeepsBrokenPod,
    /// There was no progress within the deadline.
    ProgressDeadlineExceeded,
    /// The partition keeps pods at their revision.
    Partition,
    /// The rollout is paused.
    Paused,
    /// The rollout reached its limit.
    RolloutLimit,
    /// The user deletes the pods of older revisions.
    OnDelete,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 21] = [
        Self::Settled,
        Self::InProgress,
        Self::Terminating,
        Self::PodStarting,
        Self::MinReadySeconds,
        Self::UnavailableBudget,
        Self::RetryBackOff,
        Self::Repair,
        Self::EvictionRefused,
        Self::RemovalGate,
        Self::InPlaceUpdate,
        Self::ImagePull,
        Self::ContainerConfig,
        Self::CrashLoop,
        Self::OldRevisionBlocks,
        Self::PartitionKeepsBrokenPod,
        Self::ProgressDeadlineExceeded,
        Self::Partition,
        Self::Paused,
        Self::RolloutLimit,
        Self::OnDelete,
    ];

    /// Returns the stable name, in words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::InProgress => "in-progress",
            Self::Terminating => "terminating",
            Self::PodStarting => "pod-starting",
            Self::MinReadySeconds => "min-ready-seconds",
            Self::UnavailableBudget => "unavailable-budget",
            Self::RetryBackOff => "retry-back-off",
            Self::Repair => "repair",
            Self::EvictionRefused => "eviction-refused",
            Self::RemovalGate => "removal-gate",
            Self::InPlaceUpdate => "in-place-update",
            Self::ImagePull => "image-pull",
            Self::ContainerConfig => "container-config",
            Self::CrashLoop => "crash-loop",
            Self::OldRevisionBlocks => "old-revision-blocks",
            Self::PartitionKeepsBrokenPod => "partition-keeps-broken-pod",
            Self::ProgressDeadlineExceeded => "progress-deadline-exceeded",
            Self::Partition => "partition",
            Self::Paused => "paused",
            Self::RolloutLimit => "rollout-limit",
            Self::OnDelete => "on-delete",
        }
    }

    /// Returns the name as the reason of a condition: `ImagePull`.
    pub fn reason(self) -> String {
        let capitalized = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        self.name().split('-').map(capitalized).collect()
    }

    /// Returns the cause with this reason.
    pub(crate) fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.reason() == reason)
    }

    /// Returns the meaning of the cause for the set.
    pub const fn state(self) -> CauseState {
        match self {
            Self::Settled => CauseState::Settled,
            Self::InProgress
            | Self::Terminating
            | Self::PodStarting
            | Self::MinReadySeconds
            | Self::UnavailableBudget
            | Self::RetryBackOff
            | Self::Repair
            | Self::EvictionRefused
            | Self::RemovalGate
            | Self::InPlaceUpdate => CauseState::Working,
            Self::ImagePull
            | Self::ContainerConfig
            | Self::CrashLoop
            | Self::OldRevisionBlocks
            | Self::PartitionKeepsBrokenPod
            | Self::ProgressDeadlineExceeded => CauseState::Stuck,
            Self::Partition | Self::Paused | Self::RolloutLimit | Self::OnDelete => {
                CauseState::Held
            }
        }
    }
}

impl From<ContainerTrouble> for Cause {
    fn from(trouble: ContainerTrouble) -> Self {
        match trouble {
            ContainerTrouble::ImagePull => Self::ImagePull,
            ContainerTrouble::ContainerConfig => Self::ContainerConfig,
            ContainerTrouble::CrashLoop => Self::CrashLoop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_the_names_in_camel_case() {
        assert_eq!(Cause::ImagePull.reason(), "ImagePull");
        assert_eq!(Cause::Settled.reason(), "Settled");
        assert_eq!(
            Cause::PartitionKeepsBrokenPod.reason(),
            "PartitionKeepsBrokenPod"
        );
        for cause in Cause::ALL {
            assert_eq!(Cause::of_reason(&cause.reason()), Some(cause));
        }
        assert_eq!(Cause::of_reason("RecreateCompleted"), None);
    }
}
