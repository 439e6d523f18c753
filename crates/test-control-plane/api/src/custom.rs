//! Definitions of custom resources, and the versions that they describe.

mod complete;
mod definition;
mod embedded;
mod json_path;
mod names;
mod path;
mod priority;
mod resource;
#[cfg(feature = "cel")]
mod rule;
#[cfg(feature = "cel")]
mod rules;
mod scale;
mod schema;
mod settle;
mod trust;

pub(crate) use complete::prune;
pub use definition::{Definition, note_stored_version, set_defaults};
pub(crate) use embedded::{PathForm, each_embedded};
pub(crate) use path::{Step, field_path};
pub use priority::by_priority;
pub use resource::{Column, CustomResource};
#[cfg(feature = "cel")]
pub(crate) use rule::Rule;
#[cfg(feature = "cel")]
pub(crate) use rules::{read_value, shape};
pub use scale::Scale;
pub(crate) use schema::{AdditionalProperties, ListType, Schema, SchemaType, flag, texts};
pub use settle::{CLEANUP_FINALIZER, Settled, begin_deletion, complete_deletion, settle};
pub(crate) use settle::{approval_annotation, is_protected};
pub(crate) use trust::fault_of_bundle;

/// The storage name of the definitions.
pub const DEFINITIONS: &str = "customresourcedefinitions";
