//! What client-go gives upstream, for one controller: a raw REST client, informers with indexed
//! caches, a work queue, retries and rate limits, an event recorder, leader election, clocks and
//! feature gates.
//!
//! Nothing here reads the clock, the environment or a random source by itself: callers hand in a
//! [`clock::Clock`] and seeds, so that a whole process can be replayed from one number under
//! tokio's paused time. Fakes and mocks of every seam stand behind the `testing` feature.

// Whatever a server sends, nothing here panics.
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

// From here on, each module uses only those above it.
pub mod backoff;
pub mod clock;
pub mod fault_log;
pub mod feature_gates;
pub mod resource;
pub mod token_bucket;

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
