//! Shared fakes, and builders of test objects.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test's objects may panic on its mistakes"
)]

pub mod builders;
mod caches;
mod object_store;
mod request_tracker;
pub mod upstream;
mod write_log;

pub use caches::FakeCaches;
pub use object_store::ObjectStore;
pub use request_tracker::{Call, RequestTracker};
pub use write_log::WriteLog;
