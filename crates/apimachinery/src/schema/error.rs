//! Decode errors.

use crate::quantity::QuantityError;

/// Reason why a value can't be decoded into a type. The texts are those of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A value has another JSON type than its field, or a number is out of range.
    #[error("json: cannot unmarshal {value} into Go {target} of type {go_type}")]
    Mismatch {
        /// The found value: `string`, `bool`, `array`, `object`, `number`, or `number` and the
        /// digits.
        value: String,
        /// `value` at the root, else `struct field`, the struct's name and the path.
        target: String,
        /// The Go type of the field.
        go_type: String,
    },
    /// A text is not a quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A text is not a time.
    #[error("{0}")]
    Time(String),
    /// A value is neither a schema nor a boolean.
    #[error("boolean or JSON schema expected")]
    NeitherBoolNorSchema,
    /// A text is not base64; offset of the invalid byte.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// The schema has no type of this name.
    #[error("the schema has no type {0:?}; name one of the types in schema/types")]
    UnknownType(String),
}
