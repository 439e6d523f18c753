//! The decision core: from a set and the pods that it controls to the writes of one sync.
//!
//! Revisions first, then the pods are laid out into replicas and condemned, then four phases run
//! in order (replicas, claims of condemned pods, condemned pods, update), and at the end the status
//! is recorded, also when something failed.
//!
//! Upstream: `stateful_set_control.go`, `stateful_set_status_updater.go`.

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

mod control;
mod core;
mod counts;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod layout;
mod outcome;
mod phases;
mod revisions;
mod rolling_update;
mod run_for_all;
mod status;
mod status_updater;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod truncate;
#[cfg(test)]
mod upstream;

#[cfg(any(test, feature = "testing"))]
pub use control::MockStatefulSetControl;
pub use control::{DefaultStatefulSetControl, StatefulSetControl};
pub use error::Error;
pub use outcome::{SyncOutcome, Waiting};
#[cfg(any(test, feature = "testing"))]
pub use status_updater::MockStatusUpdater;
pub use status_updater::{RealStatusUpdater, StatusUpdater};
