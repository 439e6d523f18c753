//! Settings that affect the stored objects.

mod setters;

use std::str::FromStr;

use kube_apimachinery::schema::Version;

use crate::setters;

/// The treatment of fields outside the schema of the emulated version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Drop them, as upstream does.
    #[default]
    Prune,
    /// Store them, like a newer server that knows them.
    Keep,
}

/// An error for text that is neither `prune` nor `keep`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy {0:?}; must be one of prune, keep")]
pub struct UnknownFieldsError(String);

impl FromStr for UnknownFields {
    type Err = UnknownFieldsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "prune" => Ok(Self::Prune),
            "keep" => Ok(Self::Keep),
            _ => Err(UnknownFieldsError(text.to_owned())),
        }
    }
}

/// Upstream's feature gates that affect the stored objects, and lists and watches of them.
///
/// Upstream: `features.kubeFeatures`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerGates {
    /// `MaxUnavailableStatefulSet` (off in 1.36, on since 1.37) enables
    /// `spec.updateStrategy.rollingUpdate.maxUnavailable` of stateful sets. Without the gate the
    /// field is dropped, unless the stored set already has it.
    pub max_unavailable_stateful_set: bool,
    /// `StatefulSetRecreateStrategy` (off, since 1.37) allows the update strategy `Recreate`. While
    /// it is off, only sets that already have the strategy keep it. `None` for versions without the
    /// gate: they reject the strategy in every write of a spec.
    pub stateful_set_recreate_strategy: Option<bool>,
    /// `ShardedListAndWatch` (off, since 1.36) lets clients ask for a shard of a collection. Without
    /// the gate the parameter `shardSelector` is ignored.
    pub sharded_list_and_watch: bool,
}

/// The version of Kubernetes that the server behaves like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EmulatedVersion {
    /// Upstream, v1.36.2.
    #[default]
    V1_36,
    /// v1.37.0, built from its types and tests; no recordings exist.
    V1_37,
}

/// An error for text that is not an emulated version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot emulate version {0:?}, use 1.36 or 1.37")]
pub struct EmulatedVersionError(String);

impl FromStr for EmulatedVersion {
    type Err = EmulatedVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.36" => Ok(Self::V1_36),
            "1.37" => Ok(Self::V1_37),
            _ => Err(EmulatedVersionError(text.to_owned())),
        }
    }
}

impl EmulatedVersion {
    /// The newest version.
    pub const NEWEST: Self = Self::V1_37;

    /// Returns the minor version.
    pub fn minor(self) -> u32 {
        match self {
            Self::V1_36 => 36,
            Self::V1_37 => 37,
        }
    }

    /// Returns the version of the schema. For the crates of the control plane.
    #[doc(hidden)]
    pub fn schema(self) -> Version {
        Version::of_minor(self.minor())
    }

    /// Returns the full version, as `/version` and the OpenAPI document show it.
    pub fn git_version(self) -> &'static str {
        match self {
            Self::V1_36 => "v1.36.2",
            Self::V1_37 => "v1.37.0",
        }
    }
}

/// A reason why a list of feature gates is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureGateError {
    /// An entry without `=`.
    #[error("missing bool value for {0}")]
    MissingValue(String),
    /// An entry whose value is neither `true` nor `false`.
    #[error("invalid value of {0}, use true or false")]
    InvalidValue(String),
    /// No such gate affects this server.
    #[error("unrecognized feature gate: {0}")]
    Unrecognized(String),
}

impl FromStr for ServerGates {
    type Err = FeatureGateError;

    /// Parses a list such as `MaxUnavailableStatefulSet=true` on top of the defaults of 1.36.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, EmulatedVersion::default())
    }
}

impl ServerGates {
    setters! {
        /// Sets `MaxUnavailableStatefulSet`.
        max_unavailable_stateful_set: bool,
        /// Sets `StatefulSetRecreateStrategy`; `None` for versions without the gate.
        stateful_set_recreate_strategy: into Option<bool>,
        /// Sets `ShardedListAndWatch`.
        sharded_list_and_watch: bool,
    }

    /// Returns a version's defaults.
    pub fn at(version: EmulatedVersion) -> Self {
        Self {
            max_unavailable_stateful_set: version >= EmulatedVersion::V1_37,
            stateful_set_recreate_strategy: (version >= EmulatedVersion::V1_37).then_some(false),
            sharded_list_and_watch: false,
        }
    }

    /// Parses a list such as `MaxUnavailableStatefulSet=true` on top of a version's defaults.
    ///
    /// # Errors
    ///
    /// An entry is malformed, or the version has no such gate.
    pub fn parse(text: &str, version: EmulatedVersion) -> Result<Self, FeatureGateError> {
        let mut gates = Self::at(version);
        for entry in text.split(',').map(str::trim).filter(|e| !e.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(FeatureGateError::MissingValue(entry.to_owned()));
            };
            let value = value
                .parse()
                .map_err(|_| FeatureGateError::InvalidValue(entry.to_owned()))?;
            match name {
                "MaxUnavailableStatefulSet" => gates.max_unavailable_stateful_set = value,
                "ShardedListAndWatch" => gates.sharded_list_and_watch = value,
                "StatefulSetRecreateStrategy" if gates.stateful_set_recreate_strategy.is_some() => {
                    gates.stateful_set_recreate_strategy = Some(value);
                }
                _ => return Err(FeatureGateError::Unrecognized(name.to_owned())),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_override_the_defaults_and_errors_name_the_entry() {
        let on = ServerGates {
            max_unavailable_stateful_set: true,
            ..ServerGates::default()
        };
        assert_eq!("".parse(), Ok(ServerGates::default()));
        assert_eq!("MaxUnavailableStatefulSet=true,".parse(), Ok(on));
        for (text, message) in [
            ("A", "missing bool value for A"),
            ("A=true", "unrecognized feature gate: A"),
            (
                "MaxUnavailableStatefulSet=on",
                "invalid value of MaxUnavailableStatefulSet=on, use true or false",
            ),
        ] {
            let err = text.parse::<ServerGates>().unwrap_err();
            assert_eq!(err.to_string(), message);
        }
    }

    #[test]
    fn gates_follow_the_emulated_version() {
        let newer = EmulatedVersion::V1_37;
        let recreate = "StatefulSetRecreateStrategy=true";
        let gates = ServerGates::parse(recreate, newer).unwrap();
        assert!(gates.max_unavailable_stateful_set);
        assert_eq!(gates.stateful_set_recreate_strategy, Some(true));
        let default = ServerGates::at(newer).stateful_set_recreate_strategy;
        assert_eq!(default, Some(false));
        let err = recreate.parse::<ServerGates>().unwrap_err().to_string();
        let message = "unrecognized feature gate: StatefulSetRecreateStrategy";
        assert_eq!(err, message);
    }

    #[test]
    fn emulated_versions_are_parsed() {
        for (text, minor, full) in [("1.36", 36, "v1.36.2"), ("1.37", 37, "v1.37.0")] {
            let version: EmulatedVersion = text.parse().unwrap();
            assert_eq!((version.minor(), version.git_version()), (minor, full));
        }
        let err = "1.35".parse::<EmulatedVersion>().unwrap_err().to_string();
        assert_eq!(err, "cannot emulate version \"1.35\", use 1.36 or 1.37");
    }

    #[test]
    fn policies_are_parsed_by_name() {
        assert_eq!("prune".parse(), Ok(UnknownFields::Prune));
        assert_eq!("keep".parse(), Ok(UnknownFields::Keep));
        let err = "drop".parse::<UnknownFields>().unwrap_err();
        let message = "unknown policy \"drop\"; must be one of prune, keep";
        assert_eq!(err.to_string(), message);
    }
}
