//! Go-compatible JSON: encoding, the number rule of recorded revisions, and raw objects.
//!
//! Names and hashes of revisions depend on the bytes of Go's `encoding/json`. This module writes
//! the same bytes from a [`serde_json::Value`], whose objects are sorted by key as long as the
//! `preserve_order` feature of `serde_json` is off.

mod deep;
mod document;
mod edit;
mod encode;
mod format;
mod number;
mod raw_object;

pub use deep::{OnLargeStack, ParseError, is_deep, on_large_stack, parse};
pub use document::{Document, replace_invalid_utf8};
pub use edit::{edit_list, object_member};
pub use encode::may_need_escapes;
pub use encode::to_go_string;
pub use encode::to_raw;
pub use encode::write_go;
pub use encode::write_go_str;
pub use format::{float_to_go_format, to_go_format};
pub use number::equal_as_doubles;
pub use number::go_number;
pub use number::numbers_as_doubles;
pub use number::whole_numbers_as_integers;
pub use raw_object::RawObject;

#[cfg(test)]
mod tests;
