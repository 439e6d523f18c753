//! Tests of this crate as a whole, with their world; a module has its own next to it.

mod upstream;
pub(crate) mod world;
