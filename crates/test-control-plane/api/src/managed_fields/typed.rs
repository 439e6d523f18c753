//! The operations of structured-merge-diff on typed values.
//!
//! A type decides whether the parts of a value have separate owners or the value is atomic. The schema
//! provides the types of the kinds. Values outside the schema are atomic.

mod atomics;
mod compare;
mod field_set;
mod items;
mod merge;
mod reconcile;
mod remove;
mod types;
mod validate;

pub(crate) use atomics::atomics;
pub(crate) use compare::{Comparison, compare};
pub(crate) use field_set::{field_set, with_named_fields};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::remove;
pub(crate) use types::TypeRef;
pub use validate::Strictness;
pub(crate) use validate::{is_declared, is_typed, validate};

#[cfg(test)]
mod tests;
