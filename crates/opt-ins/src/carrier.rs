//! The annotations that carry a set's choices.

use statefulset_client::feature_gates::FeatureGates;

/// Prefix of all carriers.
pub const PREFIX: &str = "statefulset-controller-manager/";

/// Names of annotations with the prefix that carry no choice: `kubectl sts fence release` sets and
/// removes one to wake the built-in controller.
pub(crate) const MARKS: [&str; 1] = ["released"];

/// An annotation of a set that carries a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Carrier {
    /// The repair of a blocked rollout: `none`, `evict` or `delete`.
    Repair,
    /// Duration after which a pod that isn't ready is repaired.
    RepairAfter,
    /// Conditions in the status: `true` or `false`.
    Conditions,
    /// Duration without progress after which the set is stalled. Brings the conditions.
    ProgressDeadline,
    /// The reaction to the deadline: `stall` or `pause`.
    OnDeadline,
    /// Label or annotation that keeps a pod from being removed: `KEY` or `KEY=VALUE`.
    RemovalGate,
    /// Duration after which a gate no longer holds.
    RemovalGateTimeout,
    /// No replacements for an update: `true` or `false`.
    Paused,
    /// The pods that are updated: a number of pods, or `ordinal=N` for those from N on.
    RolloutTo,
    /// Updates of running pods: `none`, `metadata` or `resources`.
    InPlace,
    /// Duration after which a resize that isn't completed is given up.
    InPlaceTimeout,
    /// Sizes of claims by claim template: `data=20Gi,wal=5Gi`.
    ClaimSize,
    /// Restarts of pods whose volumes need one to grow: `online` (none) or `with-pod`.
    ClaimResize,
}

impl Carrier {
    /// All carriers.
    pub const ALL: [Self; 13] = [
        Self::Repair,
        Self::RepairAfter,
        Self::Conditions,
        Self::ProgressDeadline,
        Self::OnDeadline,
        Self::RemovalGate,
        Self::RemovalGateTimeout,
        Self::Paused,
        Self::RolloutTo,
        Self::InPlace,
        Self::InPlaceTimeout,
        Self::ClaimSize,
        Self::ClaimResize,
    ];

    /// Returns the annotation's key.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Repair => "statefulset-controller-manager/repair",
            Self::RepairAfter => "statefulset-controller-manager/repair-after",
            Self::Conditions => "statefulset-controller-manager/conditions",
            Self::ProgressDeadline => "statefulset-controller-manager/progress-deadline",
            Self::OnDeadline => "statefulset-controller-manager/on-deadline",
            Self::RemovalGate => "statefulset-controller-manager/removal-gate",
            Self::RemovalGateTimeout => "statefulset-controller-manager/removal-gate-timeout",
            Self::Paused => "statefulset-controller-manager/paused",
            Self::RolloutTo => "statefulset-controller-manager/rollout-to",
            Self::InPlace => "statefulset-controller-manager/in-place",
            Self::InPlaceTimeout => "statefulset-controller-manager/in-place-timeout",
            Self::ClaimSize => "statefulset-controller-manager/claim-size",
            Self::ClaimResize => "statefulset-controller-manager/claim-resize",
        }
    }

    /// Returns the key without the prefix.
    pub fn name(self) -> &'static str {
        let annotation = self.annotation();
        annotation.strip_prefix(PREFIX).unwrap_or(annotation)
    }

    /// Returns the carrier with this annotation key.
    pub fn of_annotation(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.annotation() == key)
    }

    /// Returns true if all sets may share a choice. Sizes name the claim templates of one set.
    pub const fn may_have_default(self) -> bool {
        !matches!(self, Self::ClaimSize)
    }

    /// Returns the name of the carrier's feature gate.
    pub const fn gate(self) -> &'static str {
        match self {
            Self::Repair | Self::RepairAfter => "StatefulSetRepair",
            Self::Conditions | Self::ProgressDeadline | Self::OnDeadline => "StatefulSetConditions",
            Self::RemovalGate | Self::RemovalGateTimeout => "StatefulSetRemovalGate",
            Self::Paused | Self::RolloutTo => "StatefulSetRolloutControl",
            Self::InPlace | Self::InPlaceTimeout => "StatefulSetInPlaceUpdate",
            Self::ClaimSize | Self::ClaimResize => "StatefulSetClaimGrowth",
        }
    }

    /// Returns true if the carrier's feature gate is on.
    pub const fn is_enabled(self, gates: FeatureGates) -> bool {
        match self {
            Self::Repair | Self::RepairAfter => gates.stateful_set_repair,
            Self::Conditions | Self::ProgressDeadline | Self::OnDeadline => {
                gates.stateful_set_conditions
            }
            Self::RemovalGate | Self::RemovalGateTimeout => gates.stateful_set_removal_gate,
            Self::Paused | Self::RolloutTo => gates.stateful_set_rollout_control,
            Self::InPlace | Self::InPlaceTimeout => gates.stateful_set_in_place_update,
            Self::ClaimSize | Self::ClaimResize => gates.stateful_set_claim_growth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_has_the_prefix_and_a_name_of_its_own() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.annotation(), format!("{PREFIX}{}", carrier.name()));
            assert_eq!(Carrier::of_annotation(carrier.annotation()), Some(carrier));
            assert!(!carrier.is_enabled(FeatureGates::default()));
            assert!(carrier.is_enabled(FeatureGates::default().with_opt_ins()));
            let mut gates = FeatureGates::default();
            gates.set(carrier.gate(), true).unwrap();
            assert!(carrier.is_enabled(gates));
        }
        assert_eq!(Carrier::of_annotation("repair"), None);
    }
}
