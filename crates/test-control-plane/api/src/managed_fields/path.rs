//! Field path elements, with the order and the text forms of structured-merge-diff.
//!
//! An element has two forms: one in `fieldsV1` (`f:spec`, `k:{"name":"c"}`, `v:"x"`, `i:3`) and one
//! in messages (`.spec`, `[name="c"]`, `[="x"]`, `[3]`).

use std::cmp::Ordering;
use std::fmt;

use kube_apimachinery::json::to_go_string;
use serde_json::{Map, Number, Value};

/// One step from a value to a child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement {
    /// The member with this name.
    Field(Box<str>),
    /// The list element with these key values, sorted by name.
    Key(Box<[(Box<str>, Atom)]>),
    /// The set element with this value.
    Value(Atom),
    /// The list element at this index.
    Index(i64),
}

/// A path from the root of an object.
pub(crate) type Path = Vec<PathElement>;

/// A reason why a text is not a path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// The type is unknown; readers skip the element.
    #[error("unknown path element type")]
    UnknownType,
    /// The text has no type.
    #[error("{0:?} is not a path element")]
    NoType(String),
    /// The text after the type is invalid.
    #[error("parsing the path element {text:?}: {why}")]
    Malformed {
        /// The whole text.
        text: String,
        /// The reason.
        why: String,
    },
}

impl PathElement {
    /// Returns the element for member `name`.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Parses the form in `fieldsV1`.
    ///
    /// # Errors
    ///
    /// The text is not a path element.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        let malformed = |why: String| PathError::Malformed {
            text: text.to_owned(),
            why,
        };
        let (kind, rest) = match (text.as_bytes(), text.get(2..)) {
            ([kind, b':', ..], Some(rest)) => (*kind, rest),
            _ => return Err(PathError::NoType(text.to_owned())),
        };
        match kind {
            b'f' => Ok(Self::Field(rest.into())),
            b'v' => serde_json::from_str(rest)
                .map(|value| Self::Value(Atom(value)))
                .map_err(|err| malformed(err.to_string())),
            // The map sorts by name.
            b'k' => serde_json::from_str::<Map<String, Value>>(rest)
                .map(|key| {
                    let members = key.into_iter().map(|(name, v)| (name.into(), Atom(v)));
                    Self::Key(members.collect())
                })
                .map_err(|err| malformed(err.to_string())),
            b'i' => rest
                .parse()
                .map(Self::Index)
                .map_err(|err: std::num::ParseIntError| malformed(err.to_string())),
            _ => Err(PathError::UnknownType),
        }
    }

    /// Returns the form in `fieldsV1`.
    pub(crate) fn to_fields_v1(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(members) => {
                let key: Map<String, Value> = members
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.0.clone()))
                    .collect();
                format!("k:{}", to_go_string(&Value::Object(key)))
            }
            Self::Value(value) => format!("v:{}", to_go_string(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", members.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Formats a path for messages.
pub(crate) fn display(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A JSON value in a path element. Numbers compare by value.
#[derive(Clone, Debug)]
pub(crate) struct Atom(pub(crate) Value);

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(f, &self.0)
    }
}

/// Returns true if two values are equal, where a whole float equals an integer.
///
/// Upstream: `Equals` of structured-merge-diff
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    compare(left, right).is_eq()
}

/// Orders values by type (numbers, strings, booleans, lists, objects, null), then by value.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right);
            pairs
                .map(|(left, right)| compare(left, right))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left.iter().zip(right);
            pairs
                .map(|(left, right)| {
                    let by_name = left.0.cmp(right.0);
                    by_name.then_with(|| compare(left.1, right.1))
                })
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        left.cmp(&right)
    } else {
        let number = |number: &Number| number.as_f64().unwrap_or_default();
        let order = number(left).partial_cmp(&number(right));
        order.unwrap_or(Ordering::Equal)
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Array(items) => {
            f.write_str("[")?;
            for (i, item) in items.iter().enumerate() {
                f.write_str(if i > 0 { "," } else { "" })?;
                write_value(f, item)?;
            }
            f.write_str("]")
        }
        Value::Object(members) => {
            f.write_str("{")?;
            for (i, (name, member)) in members.iter().enumerate() {
                f.write_str(if i > 0 { ";" } else { "" })?;
                write!(f, "{name}=")?;
                write_value(f, member)?;
            }
            f.write_str("}")
        }
        Value::String(text) => write!(f, "{text:?}"),
        scalar => write!(f, "{scalar}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_parsed_and_printed() {
        for (text, shown) in [
            ("f:spec", ".spec"),
            ("f:kubernetes.io/x", ".kubernetes.io/x"),
            ("f:", "."),
            ("k:{\"name\":\"c\"}", "[name=\"c\"]"),
            (
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}",
                "[containerPort=80,protocol=\"TCP\"]",
            ),
            ("v:\"x.io/f\"", "[=\"x.io/f\"]"),
            ("v:[1,{\"a\":true}]", "[=[1,{a=true}]]"),
            ("v:null", "[=null]"),
            ("i:3", "[3]"),
        ] {
            let element = PathElement::parse(text).unwrap();
            assert_eq!(element.to_fields_v1(), text);
            assert_eq!(element.to_string(), shown);
        }
        let sorted = PathElement::parse("k:{\"protocol\":\"TCP\",\"port\":1}").unwrap();
        assert_eq!(sorted.to_fields_v1(), "k:{\"port\":1,\"protocol\":\"TCP\"}");
    }

    #[test]
    fn invalid_elements_fail() {
        let unknown = PathElement::parse("x:1");
        assert_eq!(unknown, Err(PathError::UnknownType));
        for text in ["", "f", ".", "fspec", "ä:"] {
            let err = PathElement::parse(text).unwrap_err();
            assert_eq!(err, PathError::NoType(text.to_owned()));
        }
        for text in ["v:", "k:[]", "k:{", "i:x"] {
            let err = PathElement::parse(text).unwrap_err();
            assert!(matches!(err, PathError::Malformed { .. }), "{err}");
        }
    }

    #[test]
    fn elements_are_ordered_by_type_then_value() {
        let texts = [
            "f:a",
            "f:b",
            "k:{\"p\":80}",
            "k:{\"p\":443}",
            "k:{\"p\":\"1\"}",
            "k:{\"q\":1}",
            "v:1",
            "v:1.5",
            "v:2",
            "v:\"a\"",
            "v:false",
            "v:[1]",
            "v:[1,2]",
            "v:{\"a\":1}",
            "v:null",
            "i:1",
            "i:12",
        ];
        let elements: Vec<PathElement> = texts
            .iter()
            .map(|text| PathElement::parse(text).unwrap())
            .collect();
        assert!(elements.is_sorted_by(|a, b| a < b), "{elements:?}");
        assert_eq!(PathElement::parse("v:1"), PathElement::parse("v:1.0"));
    }
}
