//! Upstream's e2e tests and the shipped binaries.
//!
//! `tests/upstream` has upstream's tests; the modules here are their shared helpers.
//!
//! `tests/binaries` builds the programs like `make run` and tests them from outside: exit codes,
//! output, and effects on the API.
//!
//! `tests/deploy` tests the shipped manifests, which [`deploy`] renders.
//!
//! `tests/kubectl` runs kubectl sessions against the programs, with the feature `kubectl`.

pub mod claims;
mod cluster;
pub mod deploy;
pub mod manifests;

pub use cluster::{
    Cluster, POD_PATIENCE, Revisions, SET_PATIENCE, StatefulSet, is_ready, replicas, revision,
};
