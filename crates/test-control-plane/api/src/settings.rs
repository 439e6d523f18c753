//! Settings that affect the stored objects.

use std::str::FromStr;

/// The treatment of members outside the schema of v1.36.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Drop them, as the reference does.
    #[default]
    Prune,
    /// Store them, like a newer server that knows them.
    Keep,
}

/// An error for text that is neither `prune` nor `keep`.
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

/// The reference's feature gates that affect the stored objects.
///
/// Upstream: `features.kubeFeatures`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// `MaxUnavailableStatefulSet` (off by default) enables
    /// `spec.updateStrategy.rollingUpdate.maxUnavailable` of stateful sets. Without the gate the
    /// member is dropped, unless the stored set already has it.
    pub max_unavailable_stateful_set: bool,
}

/// A reason why a list of feature gates is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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

impl FromStr for FeatureGates {
    type Err = FeatureGateError;

    /// Parses a list such as `MaxUnavailableStatefulSet=true` on top of the defaults.
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
    fn gates_override_the_defaults_and_errors_name_the_entry() {
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
    fn policies_are_parsed_by_name() {
        assert_eq!("prune".parse(), Ok(UnknownFields::Prune));
        assert_eq!("keep".parse(), Ok(UnknownFields::Keep));
        let err = "drop".parse::<UnknownFields>().unwrap_err();
        let message = "unknown policy \"drop\", known are prune and keep";
        assert_eq!(err.to_string(), message);
    }
}
