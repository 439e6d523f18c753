//! The StatefulSet controller: watches sets and pods, queues the sets that are concerned, and
//! syncs them one step at a time.
//!
//! A controller manager links [`StatefulSetController`]. Tests and tools that want a single sync
//! over caches of their own take [`SetSyncer`].
//!
//! Upstream: `stateful_set.go`.

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

mod error;
mod handlers;
mod informers;
mod long_computation;
pub mod metrics;
mod resolve;
mod set_aside;
mod stateful_set_controller;
mod sync;
mod sync_log;
mod tasks;
#[cfg(test)]
mod upstream;

pub use error::Error;
pub use informers::{HasSynced, Informers};
pub use stateful_set_controller::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, StatefulSetController,
};
pub use sync::{SetSyncer, Synced, SyncerParts};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingGuide;
