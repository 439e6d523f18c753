//! Label selectors, from the API's form and from query strings.

mod parse;
mod validation;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::labels::LabelSet;

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

/// One compiled requirement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without duplicates.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    In,
    NotIn,
    Equals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// Reason why a selector can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The operator of a [`LabelSelectorRequirement`] is unknown.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// The key, a value or the number of values is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A query string doesn't parse.
    #[error("{0}")]
    Parse(String),
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

impl Requirement {
    /// Upstream: `labels.NewRequirement`.
    fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, SelectorError> {
        let invalid = |text: String| Err(SelectorError::Invalid(text));
        if let Err(reason) = validate_label_key(key) {
            return invalid(format!("key: Invalid value: {key:?}: {reason}"));
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                return invalid(
                    "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                        .to_owned(),
                );
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                return invalid(format!(
                    "values: Invalid value: {values:?}: values set must be empty for exists and does not exist"
                ));
            }
            Operator::GreaterThan | Operator::LessThan
                if values
                    .first()
                    .is_none_or(|value| value.parse::<i64>().is_err()) =>
            {
                return invalid(format!(
                    "values[0]: Invalid value: {:?}: for 'Gt', 'Lt' operators, the value must be an integer",
                    values.first().map_or("", String::as_str)
                ));
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            if let Err(reason) = validate_label_value(value) {
                return invalid(format!(
                    "values[{index}][{key}]: Invalid value: {value:?}: {reason}"
                ));
            }
        }
        values.sort();
        values.dedup();
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    fn matches(&self, labels: &impl LabelSet) -> bool {
        let value = labels.label(&self.key);
        let listed = |value: &str| match &self.values[..] {
            [only] => only == value,
            values => values.binary_search_by(|it| it.as_str().cmp(value)).is_ok(),
        };
        match self.operator {
            Operator::In | Operator::Equals => value.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compare(value, |label, bound| label > bound),
            Operator::LessThan => self.compare(value, |label, bound| label < bound),
        }
    }

    fn compare(&self, label: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|value| number(value));
        matches!((label.and_then(number), bound), (Some(l), Some(b)) if holds(l, b))
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

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests;
