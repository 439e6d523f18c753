//! Rules of schemas in the Common Expression Language.

mod declared;
mod values;

pub(crate) use declared::shape;
pub(crate) use values::read as read_value;
