//! ControllerRevisions: data, hash, name, order, comparison, and the writes to a set's history.
//!
//! The controller compares and stores a revision's data byte for byte; one byte that differs from
//! upstream's restarts every pod of the set. So the data is built from the verbatim template,
//! and stays text between cache and API server.
//!
//! Upstream: `pkg/controller/history`, and the revision functions of `stateful_set_utils.go`.

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

mod apply_revision;
mod compare;
mod controller_history;
mod data;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod name;
mod new_revision;
#[cfg(test)]
mod tests;

pub use apply_revision::apply_revision;
pub use compare::{find_equal_revisions, stateful_set_matches_revision};
pub use controller_history::{History, RealHistory, sort_controller_revisions};
pub use data::RevisionData;
pub use error::Error;
pub use name::{controller_revision_name, hash_controller_revision};
pub use new_revision::{NewRevision, next_revision};
