//! Tests of this crate as a whole; a module has its own next to it.

mod upstream;
