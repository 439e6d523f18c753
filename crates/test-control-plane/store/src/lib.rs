//! The object store of an API server for tests: versions, a log of changes, the clock.

pub mod clock;
pub mod store;
