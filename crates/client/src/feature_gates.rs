//! The feature gates relevant to this controller, as a plain value.

mod known;
mod version;

use std::collections::BTreeMap;

use kube_apimachinery::schema::Version;

pub use known::known_gates;
use known::{ATOMIC_FIFO, GATES, STALE_CONSISTENCY, Stage};
pub use version::{IllegalVersion, KubeVersion};

#[cfg(test)]
mod tests;

/// The version that brought `Recreate`, conditions and `maxUnavailable` by default.
const V1_37: KubeVersion = KubeVersion::v1(37);

/// The enabled feature gates and the emulated Kubernetes version. The binary passes them down;
/// there is no global.
///
/// Upstream: `features.kubeFeatures`, `featuregate.FeatureGate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each gate is an independent switch"
)]
pub struct FeatureGates {
    /// The emulated version; later gates are off.
    pub emulation_version: KubeVersion,
    /// `MaxUnavailableStatefulSet` (beta): a rolling update may take down several pods at once.
    pub max_unavailable_stateful_set: bool,
    /// `StatefulSetRecreateStrategy` (alpha since 1.37): the update strategy `Recreate`.
    pub stateful_set_recreate_strategy: bool,
    /// `PreviewParallelScaleDownFirst` (a preview of 1.38, this project's name): a `Parallel` set
    /// deletes condemned pods before it creates missing ones.
    pub preview_parallel_scale_down_first: bool,
    /// `StatefulSetSemanticRevisionComparison` (beta): revisions that differ only in defaults are
    /// equal.
    pub stateful_set_semantic_revision_comparison: bool,
    /// `StaleControllerConsistencyStatefulSet` (beta): a set is not synced until the caches contain
    /// this process's own writes.
    pub stale_controller_consistency_stateful_set: bool,
    /// `StatefulSetRepair` (alpha, this project's name): sets may opt in to the repair of a blocked
    /// rollout.
    pub stateful_set_repair: bool,
    /// `StatefulSetClaimGrowth` (alpha, this project's name): sets may opt in to larger claims.
    pub stateful_set_claim_growth: bool,
    /// `StatefulSetConditions` (alpha, this project's name): sets may opt in to conditions and a
    /// progress deadline.
    pub stateful_set_conditions: bool,
    /// `StatefulSetRemovalGate` (alpha, this project's name): sets may opt in to a gate before the
    /// removal of a pod.
    pub stateful_set_removal_gate: bool,
    /// `StatefulSetRolloutControl` (alpha, this project's name): a rollout may be paused and made in
    /// steps.
    pub stateful_set_rollout_control: bool,
    /// `StatefulSetInPlaceUpdate` (alpha, this project's name): sets may opt in to updates of running
    /// pods.
    pub stateful_set_in_place_update: bool,
    /// `ControllerManagerReleaseLeaderElectionLockOnExit` (alpha): the lease is released at exit.
    pub controller_manager_release_leader_election_lock_on_exit: bool,
    /// `AtomicFIFO` (beta): required by `StaleControllerConsistencyStatefulSet`. This project's
    /// informers always work that way, so the gate only matters for validation.
    pub atomic_fifo: bool,
    /// `ComponentFlagz` (beta): serves `/flagz`.
    pub component_flagz: bool,
    /// `ComponentStatusz` (beta): serves `/statusz`.
    pub component_statusz: bool,
    /// `WatchListClient` (beta): no effect, as this project's informers always start with a list.
    pub watch_list_client: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self::at(KubeVersion::UPSTREAM)
    }
}

/// Defines a method for each gate, with the name of its field.
macro_rules! setters {
    ($($gate:ident),+ $(,)?) => {
        impl FeatureGates {
            $(
                #[doc = concat!(
                    "Turns the gate [`", stringify!($gate), "`](#structfield.", stringify!($gate),
                    ") on or off."
                )]
                #[must_use]
                pub const fn $gate(mut self, enabled: bool) -> Self {
                    self.$gate = enabled;
                    self
                }
            )+
        }
    };
}

setters! {
    max_unavailable_stateful_set,
    stateful_set_recreate_strategy,
    preview_parallel_scale_down_first,
    stateful_set_semantic_revision_comparison,
    stale_controller_consistency_stateful_set,
    stateful_set_repair,
    stateful_set_claim_growth,
    stateful_set_conditions,
    stateful_set_removal_gate,
    stateful_set_rollout_control,
    stateful_set_in_place_update,
    controller_manager_release_leader_election_lock_on_exit,
    atomic_fifo,
    component_flagz,
    component_statusz,
    watch_list_client,
}

/// The reason that a list of feature gates was rejected; the messages are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
        /// The given value.
        value: String,
    },
    /// An entry for another component, such as `name:Gate=true`.
    #[error("component not registered: {0}")]
    UnknownComponent(String),
    /// Only some entries have the prefix `kube:`.
    #[error(
        "set kube feature gates with default empty prefix or kube: prefix consistently, \
         do not mix use"
    )]
    MixedPrefixes,
    /// This program has no gate of that name.
    #[error("unrecognized feature gate: {0}")]
    Unrecognized(String),
    /// A gate locked to its default.
    #[error("cannot set feature gate {name} to {value}, feature is locked to {default}")]
    Locked {
        /// The gate.
        name: &'static str,
        /// The given value.
        value: bool,
        /// The default.
        default: bool,
    },
    /// A gate introduced after the emulated version.
    #[error(
        "cannot set feature gate {name} to {value}, \
         feature is PreAlpha at emulated version {version}"
    )]
    PreAlpha {
        /// The gate.
        name: &'static str,
        /// The given value.
        value: bool,
        /// The emulated version.
        version: KubeVersion,
    },
    /// An enabled gate with a disabled dependency.
    #[error("{name} is enabled, but depends on features that are disabled: [{dependency}]")]
    MissingDependency {
        /// The enabled gate.
        name: &'static str,
        /// The disabled gate.
        dependency: &'static str,
    },
}

impl FeatureGates {
    /// Returns a version's defaults.
    pub fn at(version: KubeVersion) -> Self {
        let mut gates = Self {
            emulation_version: version,
            max_unavailable_stateful_set: false,
            stateful_set_recreate_strategy: false,
            preview_parallel_scale_down_first: false,
            stateful_set_repair: false,
            stateful_set_claim_growth: false,
            stateful_set_conditions: false,
            stateful_set_removal_gate: false,
            stateful_set_rollout_control: false,
            stateful_set_in_place_update: false,
            stateful_set_semantic_revision_comparison: false,
            stale_controller_consistency_stateful_set: false,
            controller_manager_release_leader_election_lock_on_exit: false,
            atomic_fifo: false,
            component_flagz: false,
            component_statusz: false,
            watch_list_client: false,
        };
        for gate in &GATES {
            if let Some(value) = gates.field(gate.name) {
                *value = gate.at(version).default;
            }
        }
        gates
    }

    /// Parses a list such as `A=true,B=false` or `kube:A=true,kube:B=false` and applies it to a
    /// version's defaults. Later entries override earlier ones with the same name, and names
    /// override `AllAlpha` and `AllBeta`.
    ///
    /// Upstream: `featureGate.Set`, `ComponentGlobalsRegistry.Set`.
    pub fn parse(text: &str, version: KubeVersion) -> Result<Self, FeatureGateError> {
        let mut values = parse_entries(text)?;
        let mut gates = Self::at(version);
        for (group, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            if let Some(value) = values.remove(group) {
                for gate in GATES.iter().filter(|gate| gate.at(version).stage == stage) {
                    if let Some(field) = gates.field(gate.name) {
                        *field = value;
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
        if let Some(field) = self.field(name) {
            *field = value;
        }
        Ok(())
    }

    /// Returns the gates' names and values, for metrics and logs; omits locked gates, and those that
    /// the version does not know.
    pub fn entries(mut self) -> Vec<(&'static str, bool)> {
        let version = self.emulation_version;
        GATES
            .iter()
            .filter(|gate| gate.is_known_at(version))
            .filter_map(|gate| Some((gate.name, *self.field(gate.name)?)))
            .collect()
    }

    /// Returns the gates' names, stages as upstream's metrics spell them, and values; omits gates
    /// that the version does not know.
    pub fn features(mut self) -> Vec<(&'static str, &'static str, bool)> {
        let version = self.emulation_version;
        GATES
            .iter()
            .filter(|gate| gate.is_known_at(version))
            .map(|gate| {
                let spec = gate.at(version);
                let value = self.field(gate.name).map_or(spec.default, |field| *field);
                (gate.name, spec.stage.name(), value)
            })
            .collect()
    }

    /// Returns true if events start with `create Pod …` instead of `Create Pod …` as in later
    /// versions.
    pub fn events_begin_in_lower_case(self) -> bool {
        self.emulation_version < KubeVersion::v1(35)
    }

    /// Returns true if revisions record an empty creation time as `null`. Later versions omit it.
    pub fn revisions_record_null_creation_time(self) -> bool {
        self.emulation_version < KubeVersion::v1(34)
    }

    /// Returns the version of the types whose fields are known: an unknown field causes no rollout
    /// by appearing or disappearing. Versions before 1.36 share its types.
    pub fn types(self) -> Version {
        Version::of_minor(self.emulation_version.minor)
    }

    /// Returns true if a set of type `Recreate` is rejected with an error. Earlier versions treat
    /// it like any unknown type.
    pub fn rejects_recreate(self) -> bool {
        self.emulation_version >= V1_37 && !self.stateful_set_recreate_strategy
    }

    /// Returns true if an update completes under every strategy. Earlier versions complete rolling
    /// updates only.
    pub fn completes_every_strategy(self) -> bool {
        self.emulation_version >= V1_37
    }

    /// Returns true if a status keeps the conditions that the update strategy `Recreate` left.
    /// Earlier versions remove them.
    pub fn keeps_recreate_conditions(self) -> bool {
        self.emulation_version >= V1_37
    }

    /// Returns true if `maxUnavailable` lets a `Parallel` set replace its unavailable outdated pods
    /// outside the budget. In earlier versions they use up the budget.
    pub fn replaces_unavailable_pods_outside_budget(self) -> bool {
        self.emulation_version >= V1_37
    }

    /// Returns true if sets may opt in to something that upstream doesn't do.
    pub fn allows_opt_ins(self) -> bool {
        self.stateful_set_repair
            || self.stateful_set_claim_growth
            || self.stateful_set_conditions
            || self.stateful_set_removal_gate
            || self.stateful_set_rollout_control
            || self.stateful_set_in_place_update
    }

    /// Returns the gates with all those of opt-ins.
    #[must_use]
    pub fn with_opt_ins(self) -> Self {
        self.stateful_set_repair(true)
            .stateful_set_claim_growth(true)
            .stateful_set_conditions(true)
            .stateful_set_removal_gate(true)
            .stateful_set_rollout_control(true)
            .stateful_set_in_place_update(true)
    }

    /// Returns the value of a gate; none for a gate locked in every version.
    fn field(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            ATOMIC_FIFO => &mut self.atomic_fifo,
            "ComponentFlagz" => &mut self.component_flagz,
            "ComponentStatusz" => &mut self.component_statusz,
            "ControllerManagerReleaseLeaderElectionLockOnExit" => {
                &mut self.controller_manager_release_leader_election_lock_on_exit
            }
            "MaxUnavailableStatefulSet" => &mut self.max_unavailable_stateful_set,
            "PreviewParallelScaleDownFirst" => &mut self.preview_parallel_scale_down_first,
            STALE_CONSISTENCY => &mut self.stale_controller_consistency_stateful_set,
            "StatefulSetClaimGrowth" => &mut self.stateful_set_claim_growth,
            "StatefulSetConditions" => &mut self.stateful_set_conditions,
            "StatefulSetInPlaceUpdate" => &mut self.stateful_set_in_place_update,
            "StatefulSetRecreateStrategy" => &mut self.stateful_set_recreate_strategy,
            "StatefulSetRemovalGate" => &mut self.stateful_set_removal_gate,
            "StatefulSetRepair" => &mut self.stateful_set_repair,
            "StatefulSetRolloutControl" => &mut self.stateful_set_rollout_control,
            "StatefulSetSemanticRevisionComparison" => {
                &mut self.stateful_set_semantic_revision_comparison
            }
            "WatchListClient" => &mut self.watch_list_client,
            _ => return None,
        })
    }

    fn check(self) -> Result<(), FeatureGateError> {
        if self.stale_controller_consistency_stateful_set && !self.atomic_fifo {
            let (name, dependency) = (STALE_CONSISTENCY, ATOMIC_FIFO);
            return Err(FeatureGateError::MissingDependency { name, dependency });
        }
        Ok(())
    }
}

/// Returns a list's entries by name, without the component prefix.
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

/// Parses a boolean like Go's flags do.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
