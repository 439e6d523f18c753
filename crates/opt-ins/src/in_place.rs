//! Updates of running pods: a change of labels, annotations, cores or memory needs no new pod.
//!
//! A pod whose resources change is in flight from the first write until its status shows them. It
//! bears a mark meanwhile, and its revision label changes with the last write. So it belongs to
//! its old revision for every controller, and an interrupted update is continued from the pod alone.

pub(crate) mod amounts;
pub(crate) mod change;
pub(crate) mod mark;
pub(crate) mod step;

mod reason;

use std::time::Duration;

pub use reason::Reason;

use crate::values::InPlaceScope;

/// The updates of running pods that a set asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The changes that need no new pod.
    pub scope: InPlaceScope,
    /// Time for which a resize may be deferred or in progress.
    pub timeout: Duration,
}
