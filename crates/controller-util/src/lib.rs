//! The parts of upstream's `pkg/controller` that the StatefulSet controller uses: compact types of
//! cached objects, claiming by controller reference, and the consistency store, which keeps a sync
//! from acting on caches older than the controller's own writes.

// Server data must never cause a panic.
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

pub mod claim;
pub mod consistency;
pub mod controller_ref_manager;
pub mod controller_revision;
pub mod error;
pub mod index;
pub mod live;
pub mod live_set_check;
pub mod pod;
pub mod pod_control;
pub mod stateful_set;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tracked_client;

mod decode;
