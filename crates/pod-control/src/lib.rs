//! The pods of a set and their claims: a pod's claims are created before the pod, its identity and
//! storage are repaired, and the owner references of its claims follow the retention policy.
//!
//! An existing object is changed in one way: read it live, compare its uid, decide again, edit its
//! raw JSON, and write it back with its resource version.
//!
//! Upstream: `stateful_pod_control.go`, and the pod functions of `stateful_set_utils.go`.

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
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod live_set_check;
mod object_manager;
mod stateful_pod_control;
pub mod stateful_set_utils;
#[cfg(test)]
mod test_setup;
#[cfg(test)]
mod upstream;

pub use error::Error;
pub use live_set_check::{LiveSetCheck, Turn};
#[cfg(any(test, feature = "testing"))]
pub use object_manager::MockObjectManager;
pub use object_manager::{ObjectManager, RealObjectManager};
pub use stateful_pod_control::{SetPodControl, StatefulPodControl};
pub use stateful_set_utils::{NewClaim, NewPod, Ordinal, PodSlot};
