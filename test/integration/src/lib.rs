//! Tests of the whole controller against the test control plane, in process and in paused time.
//!
//! Upstream's integration tests are part of them.

mod cluster;
pub mod left_out;
pub mod manifests;
pub mod poll;
pub mod recorded;
pub mod server;
pub mod space;
pub mod stateful_sets;
pub mod turn;
pub mod versions;
mod world;

pub use cluster::NodeCluster;
pub use world::World;
