//! Field ownership and server-side apply.
//!
//! A client's write makes it a manager of the fields that it changes. This module computes the
//! managers in `metadata.managedFields` and merges applied configurations into objects. It works on
//! plain objects and never accesses the store.
//!
//! Upstream: `k8s.io/apimachinery/pkg/util/managedfields` and structured-merge-diff.

mod applier;
mod conflict;
mod fields_v1;
mod in_order;
mod last_applied;
mod managers;
mod path;
mod reset_fields;
mod scale;
mod set;
mod tracker;
mod typed;
mod unmanaged;
mod updater;
mod user_agent;
mod versions;

use std::sync::Arc;

use crate::kinds::Kind;

pub use self::applier::{Applied, apply, described};
pub(crate) use self::in_order::sorted_fields;
pub use self::scale::{to_parent, to_subresource};
pub use self::tracker::{is_trackable, track};
pub use self::typed::Strictness;
pub use self::unmanaged::merge_unmanaged;
pub(crate) use self::user_agent::{check_field_manager, manager_of};

/// The author of a write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The row of the kind, in the written version.
    pub kind: &'a Arc<Kind>,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The manager's name.
    pub manager: &'a str,
    /// The current time, as the API prints it.
    pub now: &'a str,
}

#[cfg(test)]
mod tests;
