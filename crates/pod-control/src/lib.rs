//! A set's pods and their claims: creates a pod's claims before the pod, repairs its identity and
//! storage, and applies the retention policy to the owner references of its claims.
//!
//! Every change to an existing object follows the same steps: read it live, compare its uid, decide
//! again, edit its raw JSON, and write it with its resource version.
//!
//! Upstream: `stateful_pod_control.go`, and the pod functions of `stateful_set_utils.go`.

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
mod stateful_pod_control;
pub mod stateful_set_utils;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use stateful_pod_control::{
    ObjectManager, RealObjectManager, SetClaims, SetEvents, SetPodControl, StatefulPodControl,
};
pub use stateful_set_utils::{ClaimSizes, NewClaim, NewPod, Ordinal, PodSlot};
