//! Values with their types: what structured-merge-diff does with them.
//!
//! A type says which parts of a value are owned one by one and which are one value. The types of
//! the kinds come from the schema; what the schema doesn't know is one value.

mod compare;
mod field_set;
mod items;
mod merge;
mod reconcile;
mod remove;
mod types;
mod validate;

pub(crate) use compare::{Comparison, compare};
pub(crate) use field_set::{field_set, with_named_fields};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::remove;
pub(crate) use types::TypeRef;
pub use validate::Strictness;
pub(crate) use validate::validate;

#[cfg(test)]
mod tests;
