//! A set control over objects in memory, and what must hold of them after every step.

mod cluster;
pub mod invariants;

pub use cluster::Cluster;
