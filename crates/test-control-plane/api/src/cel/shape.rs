//! Types with sizes.

use std::collections::BTreeMap;

use super::types::Type;

/// The largest request in bytes, which bounds everything in it.
pub(crate) const REQUEST_MAX: u64 = 3 * 1024 * 1024;

/// A type without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Any,
    Bool,
    Bytes,
    Double,
    Duration,
    Int,
    Text,
    Timestamp,
}

/// The type of a variable, with the largest sizes of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(super) of: Type,
    /// The largest number of elements; of bytes for texts. As in upstream, 0 for objects and
    /// numbers.
    pub(super) max: u64,
    /// The length of the shortest JSON, in bytes.
    least: u64,
    /// The fields of an object.
    pub(super) fields: BTreeMap<String, Shape>,
    /// The elements of a list, or the values of a map.
    pub(super) element: Option<Box<Shape>>,
}

impl Shape {
    /// Returns the shape of values whose JSON has at least `least` bytes, with at most `max`
    /// bytes of content.
    pub(crate) fn scalar(of: Scalar, least: u64, max: u64) -> Self {
        let of = match of {
            Scalar::Any => Type::Dyn,
            Scalar::Bool => Type::Bool,
            Scalar::Bytes => Type::Bytes,
            Scalar::Double => Type::Double,
            Scalar::Duration => Type::Duration,
            Scalar::Int => Type::Int,
            Scalar::Text => Type::String,
            Scalar::Timestamp => Type::Timestamp,
        };
        Self {
            of,
            max,
            least,
            fields: BTreeMap::new(),
            element: None,
        }
    }

    /// Returns the shape of a list.
    pub(crate) fn list(element: Self, max: Option<u64>) -> Self {
        Self {
            of: Type::list(element.of.clone()),
            max: max.unwrap_or((REQUEST_MAX - 2) / (element.least + 1)),
            least: 2,
            fields: BTreeMap::new(),
            element: Some(Box::new(element)),
        }
    }

    /// Returns the shape of a map with texts as keys.
    pub(crate) fn map(element: Self, max: Option<u64>) -> Self {
        Self {
            of: Type::map(Type::String, element.of.clone()),
            max: max.unwrap_or((REQUEST_MAX - 2) / (element.least + 6)),
            least: 2,
            fields: BTreeMap::new(),
            element: Some(Box::new(element)),
        }
    }

    /// Returns the shape of an object whose JSON has at least `least` bytes.
    pub(crate) fn object(fields: BTreeMap<String, Self>, least: u64) -> Self {
        let types = fields.iter();
        let types = types.map(|(name, field)| (name.as_str(), field.of.clone()));
        Self {
            of: Type::object("object", types),
            max: 0,
            least,
            fields,
            element: None,
        }
    }

    /// Returns the length of the shortest JSON, in bytes.
    pub(crate) fn least(&self) -> u64 {
        self.least
    }

    /// Returns the number of values of this shape that a request can hold.
    ///
    /// Upstream: `MaxCardinality`
    pub(crate) fn most_in_request(&self) -> u64 {
        REQUEST_MAX / (self.least + 1)
    }
}
