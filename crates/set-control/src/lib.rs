//! Decisions of a sync: takes a set and the pods that it controls, and makes the writes.
//!
//! A sync finds the revisions, splits the pods into desired and condemned ones, and runs four
//! phases in order: desired pods, claims of condemned pods, condemned pods, rollout. Then it
//! records the status, even if a phase failed, and truncates the history.
//!
//! Upstream: `stateful_set_control.go`, `stateful_set_status_updater.go`.

// No server input may cause a panic here.
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
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod kept_claims;
mod outcome;
mod recreate;
mod replicas;
mod revisions;
mod rolling_update;
mod run_for_all;
mod stateful_set_control;
mod stateful_set_status_updater;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod waiting;

pub use error::Error;
pub use outcome::SyncOutcome;
#[cfg(any(test, feature = "testing"))]
pub use stateful_set_control::MockStatefulSetControl;
pub use stateful_set_control::{DefaultStatefulSetControl, StatefulSetControl};
pub use stateful_set_status_updater::{RealStatusUpdater, StatusUpdater};
pub use waiting::Waiting;
