//! The subset of client-go that one controller needs: a raw REST client, informers with indexed
//! caches, a work queue, retries and rate limits, an event recorder, leader election, clocks and
//! feature gates.
//!
//! The crate takes its [`clock::Clock`] and the seeds of its delays from the caller, so that one
//! seed replays a whole process under tokio's paused time. Exceptions: [`config::load`] reads the
//! in-cluster environment, and the caches' hash tables are randomly seeded. The `testing` feature
//! adds fakes and mocks.

// No response may cause a panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

// Each module depends only on the modules above it.
pub mod backoff;
pub mod clock;
pub mod fault_log;
pub mod feature_gates;
pub mod resource;
pub mod shard;
pub mod token_bucket;

mod causes;
mod not_processed;

pub mod fence;

pub mod error;

pub mod rest;
pub mod transport;

pub mod config;

pub mod cache;
pub mod workqueue;

pub mod recorder;

pub mod leaderelection;

#[cfg(feature = "prometheus")]
pub mod metrics;

#[cfg(any(test, feature = "testing"))]
pub mod fake;
