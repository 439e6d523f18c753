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
mod informers;
mod long_computation;
pub mod metrics;
mod set_aside;
mod stateful_set;
mod sync_log;
mod tasks;
#[cfg(test)]
mod upstream;

pub use error::Error;
pub use informers::{HasSynced, Informers};
pub use stateful_set::{
    CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, ControllerConfig, SetSyncer, StatefulSetController,
    SyncerParts,
};
pub use statefulset_set_control::{SyncOutcome, Waiting};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingGuide;
