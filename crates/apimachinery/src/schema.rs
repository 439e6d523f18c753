//! The field schema of the Kubernetes types, and Go's decode and encode over plain JSON.
//!
//! Go's controller decodes an object into its types and encodes it again: members that the types
//! lack are lost, zero values appear or disappear, quantities and times take their canonical form.
//! [`normalize`] does the same to a JSON value, from a table of the types of v1.36.2 (the files in
//! `schema/types/`), so that both controllers see the same object.

mod decode;
mod error;
mod go_time;
mod path;
mod table;
mod unknown;

use serde_json::Value;

pub use self::error::DecodeError;
pub use self::path::Path;
pub use self::path::PathStep;
pub use self::path::get_path;
pub use self::table::Field;
pub use self::table::Kind;
pub use self::table::Shape;
pub use self::table::fields;
pub use self::table::is_known;
pub use self::unknown::unknown_members;

/// What becomes of members that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownMembers {
    /// They are dropped, as Go's decoder does.
    Drop,
    /// They are kept as they are, at every level.
    Keep,
}

/// Where a set's template stands, for the `at` of [`normalize_at`].
pub const AT_SET_TEMPLATE: &str = "StatefulSetSpec.spec.template";

/// Returns what Go makes of `value` when it decodes it into the type `type_name` and encodes the
/// result. Names match with their case.
///
/// # Errors
/// A value has the wrong type, does not fit, or is not a quantity or a time; the text is Go's. The
/// schema has no type of that name.
pub fn normalize(
    type_name: &str,
    value: &Value,
    unknown: UnknownMembers,
) -> Result<Value, DecodeError> {
    normalize_at(type_name, value, unknown, "")
}

/// Does what [`normalize`] does to a part of a larger object; `at` tells error texts where the part
/// stands: the Go struct that holds it, then its path from the object's root, joined by points
/// ([`AT_SET_TEMPLATE`]). It is empty for a whole object.
///
/// # Errors
/// The same.
pub fn normalize_at(
    type_name: &str,
    value: &Value,
    unknown: UnknownMembers,
    at: &str,
) -> Result<Value, DecodeError> {
    decode::Decoder::new(unknown, at).run(type_name, value)
}

#[cfg(test)]
mod tests;
