//! Upstream's functions and tests, and their counterparts here.

pub mod map;
pub mod parity;
pub mod rows;
pub mod status;
