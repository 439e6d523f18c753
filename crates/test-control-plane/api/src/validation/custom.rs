//! Validation of custom resources and of their definitions.

mod definition;
mod formats;
mod resource;

pub(super) use definition::validate as definition;
pub(crate) use formats::is_known as is_known_format;
pub(super) use resource::validate as resource;
