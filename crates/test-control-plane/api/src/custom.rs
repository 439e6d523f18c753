//! Custom resources: what their definitions say, as data of a [`Kind`](crate::kinds::Kind).

mod complete;
mod definition;
mod embedded;
mod formats;
mod lists;
mod names;
mod priority;
mod resource;
mod rows;
mod rules;
mod scale;
mod schema;
mod status;
mod validate;
mod warnings;

pub use definition::{Definition, note_stored_version, set_defaults};
pub use priority::by_priority;
pub use resource::{Column, CustomResource};
pub use rows::rows;
pub(crate) use rules::validate as validate_definition;
pub use scale::Scale;
pub(crate) use schema::{AdditionalProperties, ListType, Schema, SchemaType};
pub use status::{CLEANUP_FINALIZER, Settled, begin_deletion, complete_deletion, settle};
pub(crate) use warnings::of_definition as warnings_of;

/// The storage name of the definitions.
pub const DEFINITIONS: &str = "customresourcedefinitions";
