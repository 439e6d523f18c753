//! How the server behaves.

use std::str::FromStr;
use std::time::Duration;

use crate::auth::{Authorization, Tokens};

/// What becomes of members that the schema of v1.36.2 doesn't know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// They are dropped, as by the reference.
    #[default]
    Prune,
    /// They are stored, as by a newer server that knows them.
    Keep,
}

/// A text that is neither `prune` nor `keep`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy {0:?}, known are prune and keep")]
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

/// The feature gates of the reference that change what is stored.
///
/// Upstream: `features.kubeFeatures`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// `MaxUnavailableStatefulSet` (off by default): stateful sets have
    /// `spec.updateStrategy.rollingUpdate.maxUnavailable`. Without it the member is dropped, unless
    /// the stored set has it already.
    pub max_unavailable_stateful_set: bool,
}

/// Why a list of feature gates was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGateError {
    /// An entry without `=`.
    #[error("missing bool value for {0}")]
    MissingValue(String),
    /// An entry whose value is neither `true` nor `false`.
    #[error("invalid value of {0}, use true or false")]
    InvalidValue(String),
    /// No gate of that name changes what this server does.
    #[error("unrecognized feature gate: {0}")]
    Unrecognized(String),
}

impl FromStr for FeatureGates {
    type Err = FeatureGateError;

    /// Reads a list such as `MaxUnavailableStatefulSet=true` over the defaults.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = Self::default();
        for entry in text.split(',').map(str::trim).filter(|e| !e.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(FeatureGateError::MissingValue(entry.to_owned()));
            };
            let value = value
                .parse()
                .map_err(|_| FeatureGateError::InvalidValue(entry.to_owned()))?;
            match name {
                "MaxUnavailableStatefulSet" => gates.max_unavailable_stateful_set = value,
                _ => return Err(FeatureGateError::Unrecognized(name.to_owned())),
            }
        }
        Ok(gates)
    }
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What becomes of members that the schema doesn't know.
    pub unknown_fields: UnknownFields,
    /// Which optional behaviour is on.
    pub feature_gates: FeatureGates,
    /// How many events are kept for watches and old lists.
    pub log_window: usize,
    /// How many requests the audit log keeps.
    pub audit_limit: usize,
    /// How much the audit log keeps of the bodies of requests in all, in bytes. Beyond that the
    /// oldest ones are dropped, except those of 1 KiB or less.
    pub audit_bodies_max: usize,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark_interval: Duration,
    /// The seed of uids, generated names and watch timeouts.
    pub seed: u64,
    /// The tokens that are known.
    pub tokens: Tokens,
    /// Who decides what users may do; roles and bindings by default.
    pub authorization: Authorization,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            unknown_fields: UnknownFields::default(),
            feature_gates: FeatureGates::default(),
            log_window: 20_000,
            audit_limit: 10_000,
            audit_bodies_max: 8 * 1024 * 1024,
            bookmark_interval: Duration::from_secs(60),
            seed: 0,
            tokens: Tokens::default(),
            authorization: Authorization::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_over_the_defaults_and_errors_name_the_entry() {
        let on = FeatureGates {
            max_unavailable_stateful_set: true,
        };
        assert_eq!("".parse(), Ok(FeatureGates::default()));
        assert_eq!("MaxUnavailableStatefulSet=true,".parse(), Ok(on));
        for (text, message) in [
            ("A", "missing bool value for A"),
            ("A=true", "unrecognized feature gate: A"),
            (
                "MaxUnavailableStatefulSet=on",
                "invalid value of MaxUnavailableStatefulSet=on, use true or false",
            ),
        ] {
            let err = text.parse::<FeatureGates>().unwrap_err();
            assert_eq!(err.to_string(), message);
        }
    }

    #[test]
    fn policies_are_read_by_name() {
        assert_eq!("prune".parse(), Ok(UnknownFields::Prune));
        assert_eq!("keep".parse(), Ok(UnknownFields::Keep));
        let err = "drop".parse::<UnknownFields>().unwrap_err();
        let message = "unknown policy \"drop\", known are prune and keep";
        assert_eq!(err.to_string(), message);
    }
}
