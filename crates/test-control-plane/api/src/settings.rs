//! Settings that change what is stored.

use std::str::FromStr;

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
