//! The engine of validation: values with their paths, rules as data, and texts of values in errors.
//!
//! It knows no kind. The rules are the files in `tables/`, the functions that they call are passed
//! in, see [`parse`](parse::parse).

mod checks;
mod line_diff;
mod parse;
pub(super) mod place;
pub(super) mod print;
pub(super) mod rules;

pub(super) use checks::number_or_name;
pub(super) use parse::parse;
#[cfg(test)]
pub(super) use parse::unread;
pub(super) use place::{Context, Errors, Place, Pod};
pub(super) use rules::{Check, Functions, Guard, Hook, Rules};
