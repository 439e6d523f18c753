//! Choices for sets that make none.

use std::collections::BTreeMap;
use std::str::FromStr;

use statefulset_client::feature_gates::FeatureGates;

use crate::carrier::Carrier;
use crate::opt_ins::OptIns;

/// Values of carriers for sets without the annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptInDefaults {
    values: BTreeMap<Carrier, String>,
}

/// The reason that a list of defaults was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefaultsError {
    /// An entry without `=`.
    #[error("missing value for {0}; expected NAME=VALUE")]
    MissingValue(String),
    /// An entry whose name is not a carrier's.
    #[error("unknown name {0:?}; known are {names}", names = names())]
    UnknownName(String),
    /// A carrier whose values are about single sets.
    #[error("{0} has no default: its value names the claim templates of a set")]
    NoDefault(&'static str),
    /// A value without a meaning.
    #[error("invalid value {value:?} of {name}: {problem}")]
    InvalidValue {
        /// The carrier's name.
        name: &'static str,
        /// The value.
        value: String,
        /// The expected form.
        problem: &'static str,
    },
}

fn names() -> String {
    let carriers = Carrier::ALL.into_iter();
    let names = carriers.filter(|it| it.may_have_default());
    names.map(Carrier::name).collect::<Vec<_>>().join(", ")
}

impl OptInDefaults {
    /// Returns the value of a carrier, if it has a default.
    pub(crate) fn get(&self, carrier: Carrier) -> Option<&str> {
        self.values.get(&carrier).map(String::as_str)
    }

    /// Returns the carriers whose feature gate is off, although they have a default.
    pub fn disabled(&self, gates: FeatureGates) -> impl Iterator<Item = Carrier> {
        let carriers = self.values.keys().copied();
        carriers.filter(move |carrier| !carrier.is_enabled(gates))
    }
}

/// Parses a list such as `repair=evict,progress-deadline=10m`, with the names of carriers without
/// their prefix.
impl FromStr for OptInDefaults {
    type Err = DefaultsError;

    fn from_str(text: &str) -> Result<Self, DefaultsError> {
        let mut values = BTreeMap::new();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(DefaultsError::MissingValue(entry.to_owned()));
            };
            let mut carriers = Carrier::ALL.into_iter();
            let Some(carrier) = carriers.find(|carrier| carrier.name() == name) else {
                return Err(DefaultsError::UnknownName(name.to_owned()));
            };
            if !carrier.may_have_default() {
                return Err(DefaultsError::NoDefault(carrier.name()));
            }
            let read = OptIns::default().read(carrier, value);
            read.map_err(|problem| DefaultsError::InvalidValue {
                name: carrier.name(),
                value: value.to_owned(),
                problem,
            })?;
            values.insert(carrier, value.to_owned());
        }
        Ok(Self { values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_names_carriers_without_their_prefix() {
        let defaults: OptInDefaults = " repair=evict,removal-gate=a/b=c, ".parse().unwrap();
        assert_eq!(defaults.get(Carrier::Repair), Some("evict"));
        assert_eq!(defaults.get(Carrier::RemovalGate), Some("a/b=c"));
        assert_eq!(defaults.get(Carrier::Paused), None);
        assert_eq!(OptInDefaults::default(), "".parse().unwrap());
        let gates = FeatureGates::default().stateful_set_repair(true);
        let disabled: Vec<_> = defaults.disabled(gates).collect();
        assert_eq!(disabled, [Carrier::RemovalGate]);
    }

    #[test]
    fn unusable_lists_are_named() {
        for (text, expected) in [
            ("repair", "missing value for repair; expected NAME=VALUE"),
            (
                "repair=sometimes",
                "invalid value \"sometimes\" of repair: expected none, evict or delete",
            ),
            (
                "claim-size=data=20Gi",
                "claim-size has no default: its value names the claim templates of a set",
            ),
        ] {
            let error = text.parse::<OptInDefaults>().unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = "repiar=evict".parse::<OptInDefaults>().unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("unknown name \"repiar\"; known are repair, "),
            "{text}"
        );
    }
}
