//! The field schema of the Kubernetes types, and Go's decode and encode over plain JSON.
//!
//! Go's controller decodes an object into its types and encodes it again: it loses fields that the
//! types lack, adds or drops zero values, and canonicalises quantities and times. [`normalize`]
//! does the same to a JSON value, from a table of the types of v1.36.2 (the files in
//! `schema/types/`), so that both controllers see the same object. The table also has the fields
//! that later versions added, see [`Version`].

mod base64;
mod creation_time;
mod decode;
mod empty_lists;
mod error;
mod go_time;
mod path;
mod sources;
mod table;
mod unknown;
mod words;

use serde_json::Value;

pub use self::base64::canonical as canonical_base64;
pub use self::creation_time::with_null_creation_times;
pub use self::empty_lists::drop_empty_lists;
pub use self::error::DecodeError;
pub use self::go_time::canonical as canonical_time;
pub use self::path::Path;
pub use self::path::PathStep;
pub use self::path::get_path;
pub use self::table::Alternative;
pub use self::table::Field;
pub use self::table::Kind;
pub use self::table::Type;
pub use self::table::TypeName;
pub use self::table::Version;
pub use self::table::fields;
pub use self::table::find_type;
pub use self::table::is_known;
pub use self::table::type_of_kind;
pub use self::unknown::UnknownMembers;
pub use self::unknown::drop_unknown_members;
pub use self::unknown::unknown_members;
pub use self::unknown::unknown_members_agree;
pub use self::words::ListKey;
pub use self::words::PatchStrategy;
pub use self::words::Shape;
pub use self::words::Tag;
pub use self::words::Topology;

/// Returns the result of decoding `value` in Go into the type `of` (of v1.36.2, if only a name is
/// given) and encoding it again. Names match case-sensitively.
///
/// `path` is the location of the value within its stateful set (`spec.template`), or empty for a
/// whole object; error texts include it.
///
/// # Errors
/// A value has the wrong type, is out of range, or is not a valid quantity or time; the text is
/// Go's. Also if the schema has no type of that name.
pub fn normalize<'t>(
    of: impl Into<TypeName<'t>>,
    value: &Value,
    unknown: UnknownMembers,
    path: &str,
) -> Result<Value, DecodeError> {
    normalize_owned(of, value.clone(), unknown, path)
}

/// Like [`normalize`], but consumes the value, whose strings are not copied.
///
/// # Errors
/// Those of [`normalize`].
pub fn normalize_owned<'t>(
    of: impl Into<TypeName<'t>>,
    value: Value,
    unknown: UnknownMembers,
    path: &str,
) -> Result<Value, DecodeError> {
    decode::Decoder::new(unknown, path).run(of.into(), value)
}

#[cfg(test)]
mod tests;
