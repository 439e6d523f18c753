//! Label selectors, from the API's form and from query strings.

mod parse;
mod requirement;
mod validation;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::labels::LabelSet;

use requirement::{Operator, Requirement};

pub use requirement::SelectorError;
pub use validation::{validate_label_key, validate_label_value};

/// A label selector in the API's form.
///
/// Upstream: `metav1.LabelSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels with their required values.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Additional requirements; all must hold.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement of a [`LabelSelector`].
///
/// Upstream: `metav1.LabelSelectorRequirement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values for `In` and `NotIn`; empty for the others.
    #[serde(deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A compiled selector.
///
/// Upstream: `labels.Selector`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Nothing,
    /// All requirements must hold; an empty list selects everything. Sorted by key.
    All(Vec<Requirement>),
}

impl Selector {
    /// A selector that matches nothing.
    pub fn nothing() -> Self {
        Self(Form::Nothing)
    }

    /// A selector that matches everything.
    pub fn everything() -> Self {
        Self(Form::All(Vec::new()))
    }

    /// Compiles the API's form: `None` matches nothing, an empty selector everything.
    ///
    /// # Errors
    ///
    /// An unknown operator, a malformed key or value, or values for an operator that takes none.
    ///
    /// Upstream: `metav1.LabelSelectorAsSelector`.
    pub fn from_label_selector(selector: Option<&LabelSelector>) -> Result<Self, SelectorError> {
        let Some(selector) = selector else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in &selector.match_labels {
            requirements.push(Requirement::new(
                key,
                Operator::Equals,
                vec![value.clone()],
            )?);
        }
        for expression in &selector.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(SelectorError::Operator(other.to_owned())),
            };
            requirements.push(Requirement::new(
                &expression.key,
                operator,
                expression.values.clone(),
            )?);
        }
        requirements.sort();
        Ok(Self(Form::All(requirements)))
    }

    /// Parses a query string such as `app=web,tier in (a,b),!legacy`; an empty one matches
    /// everything.
    ///
    /// # Errors
    ///
    /// A syntax error, or a malformed key or value.
    ///
    /// Upstream: `labels.Parse`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = parse::parse(text)?;
        requirements.sort();
        Ok(Self(Form::All(requirements)))
    }

    /// Returns true if the selector matches these labels.
    pub fn matches(&self, labels: &impl LabelSet) -> bool {
        match &self.0 {
            Form::Nothing => false,
            Form::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Returns true if the selector has no requirements and thus matches everything. The selector
    /// that matches nothing isn't empty.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::All(requirements) if requirements.is_empty())
    }
}

impl fmt::Display for Selector {
    /// Prints the query-string form, requirements sorted by key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Form::All(requirements) = &self.0 else {
            return Ok(());
        };
        for (index, requirement) in requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
