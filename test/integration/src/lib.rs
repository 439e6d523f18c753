//! The whole controller against the test control plane, in process and in paused time.
//!
//! Upstream's integration tests live here, beside this project's own.

mod cluster;
pub mod manifests;

pub use cluster::Cluster;
