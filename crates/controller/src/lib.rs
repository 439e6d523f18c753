//! The StatefulSet controller: watches sets and pods, and syncs the sets step by step.
//!
//! A controller manager runs a [`StatefulSetController`]; the [`Builder`] has upstream's defaults:
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = kube::Config::infer().await?;
//! let shutdown = async { drop(tokio::signal::ctrl_c().await) };
//! let controller = statefulset_controller::StatefulSetController::builder(config).build()?;
//! controller.run(shutdown).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`SetSyncer`] runs a single sync over given caches. Most modules re-export names for embedders.
//!
//! Upstream: `stateful_set.go`.

// No server input may panic here.
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

pub mod apimachinery;
pub mod client;
pub mod controller_util;
pub mod dry;
mod error;
pub mod fence;
mod informers;
mod long_computation;
pub mod metrics;
pub mod opt_ins;
mod set_aside;
pub mod shadow;
mod stateful_set;
mod sync_log;
mod tasks;
#[cfg(test)]
mod tests;

pub use error::{Error, RunError};
pub use informers::{HasSynced, Informers};
pub use stateful_set::{
    BuildError, Builder, CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT, LeaderElection, PodHandler,
    RESYNC_PERIOD_DEFAULT, SetSyncer, StatefulSetController, SyncerParts,
};
pub use statefulset_set_control::{SyncOutcome, Waiting};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
#[doc = include_str!("../../../docs/managed-clusters.md")]
struct Guides;
