//! The pods of a set and the claims behind them: claims come first, then the pod; a pod's identity
//! and storage are compared and repaired; owner references on claims follow the retention policy.
//!
//! Whatever exists is changed in one way: read live, checked against the uid that was decided on,
//! decided on again, edited as raw JSON, and written back with its resource version.
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

mod claims;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
pub mod identity;
mod live_set_check;
mod new_pod;
mod object_manager;
mod real;
pub mod retention;
mod slot;
mod stateful_pod_control;
mod storage;
#[cfg(test)]
mod test_setup;
#[cfg(test)]
mod upstream;

pub use error::Error;
pub use identity::Ordinal;
pub use live_set_check::{LiveSetCheck, Turn};
pub use new_pod::NewPod;
#[cfg(any(test, feature = "testing"))]
pub use object_manager::MockObjectManager;
pub use object_manager::{ObjectManager, RealObjectManager};
pub use real::RealStatefulPodControl;
pub use slot::PodSlot;
#[cfg(any(test, feature = "testing"))]
pub use stateful_pod_control::MockStatefulPodControl;
pub use stateful_pod_control::StatefulPodControl;
pub use storage::{NewClaim, new_claims, storage_matches};
