//! Comparisons in filters.
//!
//! Upstream: `k8s.io/client-go/third_party/forked/golang/template`

use std::cmp::Ordering;

use serde_json::Value;

/// The operator of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// One that every comparison fails with.
    Unknown,
}

impl Operator {
    pub(super) fn of_text(text: &str) -> Self {
        match text {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            _ => Self::Unknown,
        }
    }

    /// Compares two values; `None` if they can't be compared.
    pub(super) fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::Bool(left), Value::Bool(right)) => match self {
                Self::Equal => return Some(left == right),
                Self::NotEqual => return Some(left != right),
                _ => return None,
            },
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
                // Whole numbers have another type.
                _ => return None,
            },
            _ => return None,
        };
        let is = |wanted| order == Some(wanted);
        Some(match self {
            Self::Equal => is(Ordering::Equal),
            Self::NotEqual => !is(Ordering::Equal),
            Self::Less => is(Ordering::Less),
            Self::LessEqual => !is(Ordering::Greater),
            Self::Greater => is(Ordering::Greater),
            Self::GreaterEqual => !is(Ordering::Less),
            Self::Unknown => return None,
        })
    }
}
