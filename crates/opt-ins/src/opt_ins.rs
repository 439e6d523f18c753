//! The choices of one set.

use std::time::Duration;

use statefulset_pod_control::ClaimSizes;

use crate::carrier::Carrier;
use crate::defect::Defect;
use crate::in_place::InPlace;
use crate::removal_gate::RemovalGate;
use crate::repair::Repair;
use crate::values::{
    ClaimResize, DeadlineReaction, GateKey, InPlaceScope, Problem, RepairMethod, RolloutTo,
    boolean, claim_resize, claim_sizes, deadline_reaction, duration, gate_key, in_place_scope,
    positive_duration, repair_method, rollout_to, unless_none,
};

/// Time for which a pod may be unready before it is repaired, unless the set says otherwise.
const REPAIR_AFTER_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// Time for which a resize may be deferred or in progress, unless the set says otherwise.
const IN_PLACE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// The choices of one set. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptIns {
    repair_method: Option<RepairMethod>,
    repair_after: Option<Duration>,
    conditions: bool,
    /// Time without progress after which the set is stalled.
    pub progress_deadline: Option<Duration>,
    /// The reaction to the deadline.
    pub on_deadline: DeadlineReaction,
    removal_gate: Option<GateKey>,
    removal_gate_timeout: Option<Duration>,
    /// True if no pod is replaced for an update.
    pub paused: bool,
    /// The end of the rollout, if it is limited.
    pub rollout_to: Option<RolloutTo>,
    in_place: Option<InPlaceScope>,
    in_place_timeout: Option<Duration>,
    /// The sizes of claims that the set asks for.
    pub claim_sizes: ClaimSizes,
    /// The restart of pods whose volumes need one to grow.
    pub claim_resize: ClaimResize,
    /// Annotations that can't be used, by key.
    pub defects: Vec<Defect>,
}

impl OptIns {
    /// Reads the value of a carrier.
    ///
    /// # Errors
    ///
    /// The expected form of the value.
    pub(crate) fn read(&mut self, carrier: Carrier, value: &str) -> Result<(), Problem> {
        match carrier {
            Carrier::Repair => self.repair_method = unless_none(value, repair_method)?,
            Carrier::RepairAfter => self.repair_after = Some(duration(value)?),
            Carrier::Conditions => self.conditions = boolean(value)?,
            Carrier::ProgressDeadline => {
                self.progress_deadline = unless_none(value, positive_duration)?;
            }
            Carrier::OnDeadline => self.on_deadline = deadline_reaction(value)?,
            Carrier::RemovalGate => self.removal_gate = unless_none(value, gate_key)?,
            Carrier::RemovalGateTimeout => {
                self.removal_gate_timeout = unless_none(value, duration)?;
            }
            Carrier::Paused => self.paused = boolean(value)?,
            Carrier::RolloutTo => self.rollout_to = unless_none(value, rollout_to)?,
            Carrier::InPlace => self.in_place = unless_none(value, in_place_scope)?,
            Carrier::InPlaceTimeout => self.in_place_timeout = Some(positive_duration(value)?),
            Carrier::ClaimSize => {
                self.claim_sizes = unless_none(value, claim_sizes)?.unwrap_or_default();
            }
            Carrier::ClaimResize => self.claim_resize = claim_resize(value)?,
        }
        Ok(())
    }

    /// Does less because of a carrier with an unreadable value, where the default would be unsafe.
    pub(crate) fn hold(&mut self, carrier: Carrier) {
        match carrier {
            // Without the choice, pods would restart.
            Carrier::Paused | Carrier::RolloutTo | Carrier::InPlace => self.paused = true,
            Carrier::InPlaceTimeout => self.in_place_timeout = Some(Duration::MAX),
            Carrier::RepairAfter => self.repair_method = None,
            Carrier::OnDeadline => self.on_deadline = DeadlineReaction::Pause,
            Carrier::RemovalGate => self.removal_gate = Some(GateKey::Unreadable),
            Carrier::ClaimSize | Carrier::ClaimResize => self.claim_sizes = ClaimSizes::default(),
            _ => {}
        }
    }

    /// Returns true if the choice of a carrier limits the rollout.
    pub(crate) fn limits(&self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Paused => self.paused,
            Carrier::RolloutTo => self.rollout_to.is_some(),
            Carrier::InPlace => self.in_place.is_some(),
            _ => false,
        }
    }

    /// Returns the repair of a blocked rollout, if the set has one.
    pub fn repair(&self) -> Option<Repair> {
        Some(Repair {
            method: self.repair_method?,
            after: self.repair_after.unwrap_or(REPAIR_AFTER_DEFAULT),
        })
    }

    /// Returns the gate before the removal of a pod, if the set has one.
    pub fn removal_gate(&self) -> Option<RemovalGate<'_>> {
        let key = self.removal_gate.as_ref()?;
        Some(RemovalGate {
            key,
            // A gate that can't be read holds until it is corrected.
            timeout: self
                .removal_gate_timeout
                .filter(|_| *key != GateKey::Unreadable),
        })
    }

    /// Returns the updates of running pods, if the set has them.
    pub fn in_place(&self) -> Option<InPlace> {
        Some(InPlace {
            scope: self.in_place?,
            timeout: self.in_place_timeout.unwrap_or(IN_PLACE_TIMEOUT_DEFAULT),
        })
    }

    /// Returns true if the set's status has conditions. A deadline brings them, because they hold
    /// the time of the last progress.
    pub fn has_conditions(&self) -> bool {
        self.conditions || self.progress_deadline.is_some()
    }
}
