//! Validation of custom resources and of their definitions.

mod definition;
mod resource;

pub(crate) use crate::go::strfmt::is_known as is_known_format;
pub(super) use definition::validate as definition;
pub(super) use resource::validate as resource;
