//! The feature gates that concern this controller, as a plain value.

mod known;
mod version;

use std::collections::BTreeMap;

pub use known::known_gates;
use known::{ATOMIC_FIFO, GATES, STALE_CONSISTENCY, Stage};
pub use version::{IllegalVersion, KubeVersion};

#[cfg(test)]
mod tests;

/// Which optional behaviour is on, and which version of Kubernetes is emulated. Passed down from the
/// binary; there is no global.
///
/// Upstream: `features.kubeFeatures`, `featuregate.FeatureGate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each gate is a switch of its own"
)]
pub struct FeatureGates {
    /// The version to behave like; gates that came later are off.
    pub emulation_version: KubeVersion,
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
    /// `ComponentFlagz` (beta): `/flagz` is served.
    pub component_flagz: bool,
    /// `ComponentStatusz` (beta): `/statusz` is served.
    pub component_statusz: bool,
    /// `WatchListClient` (beta): without effect, as the informers of this project always begin with
    /// a list.
    pub watch_list_client: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self::at(KubeVersion::REFERENCE)
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
    /// An entry for another program, such as `name:Gate=true`.
    #[error("component not registered: {0}")]
    UnknownComponent(String),
    /// Some entries begin with `kube:` and some don't.
    #[error(
        "set kube feature gates with default empty prefix or kube: prefix consistently, \
         do not mix use"
    )]
    MixedPrefixes,
    /// No gate of that name concerns this program.
    #[error("unrecognized feature gate: {0}")]
    Unrecognized(String),
    /// A gate that can only have its default.
    #[error("cannot set feature gate {name} to {value}, feature is locked to {default}")]
    Locked {
        /// The gate.
        name: &'static str,
        /// What was given.
        value: bool,
        /// What it stays at.
        default: bool,
    },
    /// A gate that came after the version that is emulated.
    #[error(
        "cannot set feature gate {name} to {value}, \
         feature is PreAlpha at emulated version {version}"
    )]
    PreAlpha {
        /// The gate.
        name: &'static str,
        /// What was given.
        value: bool,
        /// The version emulated.
        version: KubeVersion,
    },
    /// A gate is on whose condition is off.
    #[error("{name} is enabled, but depends on features that are disabled: [{dependency}]")]
    MissingDependency {
        /// The gate that is on.
        name: &'static str,
        /// The gate that is off.
        dependency: &'static str,
    },
}

impl FeatureGates {
    /// The defaults of a version.
    pub fn at(version: KubeVersion) -> Self {
        let mut gates = Self {
            emulation_version: version,
            max_unavailable_stateful_set: false,
            stateful_set_semantic_revision_comparison: false,
            stale_controller_consistency_stateful_set: false,
            controller_manager_release_leader_election_lock_on_exit: false,
            atomic_fifo: false,
            component_flagz: false,
            component_statusz: false,
            watch_list_client: false,
        };
        for gate in &GATES {
            if let Some(field) = gate.field {
                *field(&mut gates) = gate.at(version).default;
            }
        }
        gates
    }

    /// Reads a list such as `A=true,B=false` or `kube:A=true,kube:B=false` over the defaults of a
    /// version. A later entry wins over an earlier one of the same name, and an entry by name over
    /// `AllAlpha` and `AllBeta`.
    ///
    /// Upstream: `featureGate.Set`, `ComponentGlobalsRegistry.Set`.
    pub fn parse(text: &str, version: KubeVersion) -> Result<Self, FeatureGateError> {
        let mut values = parse_entries(text)?;
        let mut gates = Self::at(version);
        for (group, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            if let Some(value) = values.remove(group) {
                for gate in GATES.iter().filter(|gate| gate.at(version).stage == stage) {
                    if let Some(field) = gate.field {
                        *field(&mut gates) = value;
                    }
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
        let Some(gate) = GATES.iter().find(|gate| gate.name == name) else {
            return Err(FeatureGateError::Unrecognized(name.to_owned()));
        };
        let (name, version) = (gate.name, self.emulation_version);
        let spec = gate.at(version);
        if spec.locked && spec.default != value {
            let default = spec.default;
            return Err(FeatureGateError::Locked {
                name,
                value,
                default,
            });
        }
        if spec.stage == Stage::PreAlpha {
            return Err(FeatureGateError::PreAlpha {
                name,
                value,
                version,
            });
        }
        if let Some(field) = gate.field {
            *field(self) = value;
        }
        Ok(())
    }

    /// The gates by name with their values, for metrics and logs; without those that are locked.
    pub fn entries(mut self) -> Vec<(&'static str, bool)> {
        GATES
            .iter()
            .filter_map(|gate| Some((gate.name, *gate.field?(&mut self))))
            .collect()
    }

    /// The gates by name with their stages, as upstream's metrics name them, and their values.
    pub fn features(mut self) -> Vec<(&'static str, &'static str, bool)> {
        GATES
            .iter()
            .map(|gate| {
                let spec = gate.at(self.emulation_version);
                let value = gate.field.map_or(spec.default, |field| *field(&mut self));
                (gate.name, spec.stage.name(), value)
            })
            .collect()
    }

    /// Whether events say `create Pod …` where later versions say `Create Pod …`.
    pub fn events_begin_in_lower_case(self) -> bool {
        self.emulation_version < KubeVersion::v1(35)
    }

    /// Whether revisions record an empty creation time as `null`, which later versions leave out.
    pub fn revisions_record_null_creation_time(self) -> bool {
        self.emulation_version < KubeVersion::v1(34)
    }

    fn check(self) -> Result<(), FeatureGateError> {
        if self.stale_controller_consistency_stateful_set && !self.atomic_fifo {
            let (name, dependency) = (STALE_CONSISTENCY, ATOMIC_FIFO);
            return Err(FeatureGateError::MissingDependency { name, dependency });
        }
        Ok(())
    }
}

/// The entries of a list by name, without the component in front.
fn parse_entries(text: &str) -> Result<BTreeMap<&str, bool>, FeatureGateError> {
    let mut values = BTreeMap::new();
    let mut components = Vec::new();
    let entries = text.split(',').map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        let (component, entry) = match entry.split_once(':') {
            Some((component, entry)) => (component.trim(), entry.trim()),
            None => ("", entry),
        };
        if !matches!(component, "" | "kube") {
            return Err(FeatureGateError::UnknownComponent(component.to_owned()));
        }
        components.push(component);
        let Some((name, value)) = entry.split_once('=') else {
            return Err(FeatureGateError::MissingValue(entry.to_owned()));
        };
        let (name, value) = (name.trim(), value.trim());
        let Some(value) = parse_bool(value) else {
            let (name, value) = (name.to_owned(), value.to_owned());
            return Err(FeatureGateError::InvalidValue { name, value });
        };
        values.insert(name, value);
    }
    if components
        .windows(2)
        .any(|pair| pair.first() != pair.last())
    {
        return Err(FeatureGateError::MixedPrefixes);
    }
    Ok(values)
}

/// The spellings of a boolean that Go's flags accept.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
