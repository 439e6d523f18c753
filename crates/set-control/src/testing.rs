//! A set control over objects in memory, and invariants of these objects.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test's cluster may panic on its mistakes"
)]

mod cluster;
pub mod invariants;

pub use cluster::Cluster;
