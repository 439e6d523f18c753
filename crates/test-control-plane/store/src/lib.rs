//! The object store of a test API server: versions, a change log, the clock.

pub mod clock;
pub mod store;
