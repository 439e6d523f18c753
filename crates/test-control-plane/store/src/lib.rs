//! The object store of a test API server: versions, a change log, the clock.
#![doc = include_str!("../README.md")]

pub mod clock;
pub mod store;
