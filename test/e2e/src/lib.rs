//! Upstream's e2e tests and the shipped binaries.
//!
//! `tests/upstream` holds upstream's tests; the modules here are what they share.
//!
//! `tests/binaries` builds the programs as `make run` does and looks at them from outside: their
//! exit codes, what they print, and what they leave in the API.
//!
//! `tests/deploy` looks at the manifests that the controller ships with, which [`deploy`] renders.
//!
//! `tests/kubectl` runs sessions of kubectl against them, with the feature `kubectl`.

mod claims;
mod cluster;
pub mod deploy;
pub mod manifests;

pub use cluster::{
    Cluster, POD_PATIENCE, Revisions, SET_PATIENCE, StatefulSet, is_ready, replicas, revision,
};
