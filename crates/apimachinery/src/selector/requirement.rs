//! One compiled requirement of a selector.

use std::fmt;

use super::validation::{validate_label_key, validate_label_value};
use crate::labels::LabelSet;

/// One compiled requirement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without duplicates.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operator {
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
#[non_exhaustive]
pub enum SelectorError {
    /// The operator of a [`LabelSelectorRequirement`](super::LabelSelectorRequirement) is unknown.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// The key, a value or the number of values is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A query string doesn't parse.
    #[error("{0}")]
    Parse(String),
}

impl Requirement {
    /// Upstream: `labels.NewRequirement`.
    pub(super) fn new(
        key: &str,
        operator: Operator,
        mut values: Vec<String>,
    ) -> Result<Self, SelectorError> {
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

    pub(super) fn matches(&self, labels: &impl LabelSet) -> bool {
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
