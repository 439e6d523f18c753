//! What the fakes of several crates share.

mod object_store;
mod request_tracker;

pub use object_store::ObjectStore;
pub use request_tracker::RequestTracker;
