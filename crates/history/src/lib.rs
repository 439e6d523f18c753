//! ControllerRevisions: what they record, how they are named, ordered and compared, and the writes
//! that keep a set's history.
//!
//! A revision's data is compared and stored byte for byte; a byte that differs from the reference
//! restarts every pod of the set. So the data is built from the verbatim template, and it is kept
//! as text from the API server to the API server.
//!
//! Upstream: `pkg/controller/history`, and the revision functions of `stateful_set_utils.go`.

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

mod apply;
mod compare;
mod data;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod history;
mod name;
mod new_revision;
mod order;
mod real;
#[cfg(test)]
mod upstream;

pub use apply::apply_revision;
pub use compare::{find_equal_revisions, matches_semantically};
pub use data::RevisionData;
pub use error::Error;
#[cfg(any(test, feature = "testing"))]
pub use history::MockHistory;
pub use history::{Created, History, list_controller_revisions};
pub use name::{controller_revision_name, hash_controller_revision};
pub use new_revision::NewRevision;
pub use order::{next_revision, sort_controller_revisions};
pub use real::RealHistory;
