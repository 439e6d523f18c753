//! The feature gates that concern this controller, as a plain value.

use std::collections::BTreeMap;

/// Which optional behaviour is on. Passed down from the binary; there is no global.
///
/// Upstream: `features.kubeFeatures`, `featuregate.FeatureGate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each gate is a switch of its own"
)]
pub struct FeatureGates {
    /// `MaxUnavailableStatefulSet` (beta): a rolling update may take down several pods at once.
    pub max_unavailable_stateful_set: bool,
    /// `StatefulSetSemanticRevisionComparison` (beta): revisions that differ only in defaults are
    /// the same.
    pub stateful_set_semantic_revision_comparison: bool,
    /// `StaleControllerConsistencyStatefulSet` (beta): a set is not synced before the caches hold
    /// this process's own writes.
    pub stale_controller_consistency_stateful_set: bool,
    /// `ControllerManagerReleaseLeaderElectionLockOnExit` (alpha): the lease is given up at exit.
    pub controller_manager_release_leader_election_lock_on_exit: bool,
    /// `AtomicFIFO` (beta): what `StaleControllerConsistencyStatefulSet` depends on. The informers
    /// of this project always work that way; the gate only takes part in the check.
    pub atomic_fifo: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            max_unavailable_stateful_set: false,
            stateful_set_semantic_revision_comparison: true,
            stale_controller_consistency_stateful_set: true,
            controller_manager_release_leader_election_lock_on_exit: false,
            atomic_fifo: true,
        }
    }
}

/// Why a list of feature gates was refused; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGateError {
    /// An entry without `=`.
    #[error("missing bool value for {0}")]
    MissingValue(String),
    /// An entry whose value is not a boolean.
    #[error(
        "invalid value of {name}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
    )]
    InvalidValue {
        /// The gate.
        name: String,
        /// What was given.
        value: String,
    },
    /// No gate of that name concerns this program.
    #[error("unrecognized feature gate: {0}")]
    Unrecognized(String),
    /// A gate is on whose condition is off.
    #[error("{name} is enabled, but depends on features that are disabled: [{dependency}]")]
    MissingDependency {
        /// The gate that is on.
        name: &'static str,
        /// The gate that is off.
        dependency: &'static str,
    },
}

/// How mature a gate is; `AllAlpha` and `AllBeta` go by it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
}

/// A gate's name, its stage, and where its value stands.
type Gate = (&'static str, Stage, fn(&mut FeatureGates) -> &mut bool);

const STALE_CONSISTENCY: &str = "StaleControllerConsistencyStatefulSet";
const ATOMIC_FIFO: &str = "AtomicFIFO";

const GATES: [Gate; 5] = [
    ("MaxUnavailableStatefulSet", Stage::Beta, |gates| {
        &mut gates.max_unavailable_stateful_set
    }),
    (
        "StatefulSetSemanticRevisionComparison",
        Stage::Beta,
        |gates| &mut gates.stateful_set_semantic_revision_comparison,
    ),
    (STALE_CONSISTENCY, Stage::Beta, |gates| {
        &mut gates.stale_controller_consistency_stateful_set
    }),
    (
        "ControllerManagerReleaseLeaderElectionLockOnExit",
        Stage::Alpha,
        |gates| &mut gates.controller_manager_release_leader_election_lock_on_exit,
    ),
    (ATOMIC_FIFO, Stage::Beta, |gates| &mut gates.atomic_fifo),
];

impl FeatureGates {
    /// Reads a list such as `A=true,kube:B=false` over the defaults. A later entry wins over an
    /// earlier one of the same name, and an entry by name over `AllAlpha` and `AllBeta`.
    ///
    /// Upstream: `featureGate.Set`.
    pub fn parse(text: &str) -> Result<Self, FeatureGateError> {
        let mut values = BTreeMap::new();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(FeatureGateError::MissingValue(entry.trim().to_owned()));
            };
            let (name, value) = (name.trim(), value.trim());
            let Some(value) = parse_bool(value) else {
                let (name, value) = (name.to_owned(), value.to_owned());
                return Err(FeatureGateError::InvalidValue { name, value });
            };
            values.insert(name.strip_prefix("kube:").unwrap_or(name), value);
        }
        let mut gates = Self::default();
        for (group, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            if let Some(value) = values.remove(group) {
                for (_, _, field) in GATES.iter().filter(|gate| gate.1 == stage) {
                    *field(&mut gates) = value;
                }
            }
        }
        for (name, value) in values {
            gates.set(name, value)?;
        }
        gates.check()?;
        Ok(gates)
    }

    /// Sets one gate by its upstream name.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), FeatureGateError> {
        let Some((_, _, field)) = GATES.iter().find(|gate| gate.0 == name) else {
            return Err(FeatureGateError::Unrecognized(name.to_owned()));
        };
        *field(self) = value;
        Ok(())
    }

    /// The gates by name with their values, for metrics and logs.
    pub fn entries(mut self) -> Vec<(&'static str, bool)> {
        GATES
            .iter()
            .map(|(name, _, field)| (*name, *field(&mut self)))
            .collect()
    }

    /// The gates by name with their stages, as upstream's metrics name them, and their values.
    pub fn features(mut self) -> Vec<(&'static str, &'static str, bool)> {
        GATES
            .iter()
            .map(|(name, stage, field)| {
                let stage = match stage {
                    Stage::Alpha => "ALPHA",
                    Stage::Beta => "BETA",
                };
                (*name, stage, *field(&mut self))
            })
            .collect()
    }

    fn check(self) -> Result<(), FeatureGateError> {
        if self.stale_controller_consistency_stateful_set && !self.atomic_fifo {
            let (name, dependency) = (STALE_CONSISTENCY, ATOMIC_FIFO);
            return Err(FeatureGateError::MissingDependency { name, dependency });
        }
        Ok(())
    }
}

/// The spellings of a boolean that Go's flags accept.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        FeatureGates::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_those_of_the_reference() {
        let gates = FeatureGates::parse("").unwrap();
        assert_eq!(gates, FeatureGates::default());
        assert!(!gates.max_unavailable_stateful_set);
        assert!(gates.stateful_set_semantic_revision_comparison);
        assert!(gates.stale_controller_consistency_stateful_set);
    }

    #[test]
    fn a_list_sets_gates_by_name() {
        let text = "MaxUnavailableStatefulSet=true, kube:StatefulSetSemanticRevisionComparison=F";
        let gates = FeatureGates::parse(text).unwrap();
        assert!(gates.max_unavailable_stateful_set);
        assert!(!gates.stateful_set_semantic_revision_comparison);
    }

    #[test]
    fn a_stage_is_set_as_a_whole_and_names_win_over_it() {
        let gates = FeatureGates::parse("MaxUnavailableStatefulSet=false,AllBeta=true").unwrap();
        assert!(!gates.max_unavailable_stateful_set);
        assert!(!gates.controller_manager_release_leader_election_lock_on_exit);
        let gates = FeatureGates::parse("AllAlpha=true").unwrap();
        assert!(gates.controller_manager_release_leader_election_lock_on_exit);
        let gates = FeatureGates::parse("AllBeta=false").unwrap();
        assert!(!gates.stale_controller_consistency_stateful_set);
    }

    #[test]
    fn gates_tell_their_stages() {
        let features = FeatureGates::default().features();
        assert!(features.contains(&("MaxUnavailableStatefulSet", "BETA", false)));
        let alpha = "ControllerManagerReleaseLeaderElectionLockOnExit";
        assert!(features.contains(&(alpha, "ALPHA", false)));
    }

    #[test]
    fn refusals_use_the_texts_of_the_reference() {
        assert_eq!(error("A"), "missing bool value for A");
        assert_eq!(
            error("AllAlpha=maybe"),
            "invalid value of AllAlpha=maybe, err: \
             strconv.ParseBool: parsing \"maybe\": invalid syntax"
        );
        assert_eq!(
            error("Nonsense=true"),
            "unrecognized feature gate: Nonsense"
        );
        assert_eq!(
            error("AtomicFIFO=false"),
            "StaleControllerConsistencyStatefulSet is enabled, \
             but depends on features that are disabled: [AtomicFIFO]"
        );
        let text = "AtomicFIFO=false,StaleControllerConsistencyStatefulSet=false";
        assert!(FeatureGates::parse(text).is_ok());
    }
}
