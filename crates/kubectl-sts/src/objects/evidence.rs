//! Objects that explain the state of sets.

use std::collections::BTreeMap;

use crate::model::{Budget, Event, Node};
use crate::server::Unreadable;

/// Objects that explain the state of sets, but don't decide about them.
#[derive(Default)]
pub(super) struct Evidence {
    /// Warnings by the uid of their object, the latest first.
    pub(super) warnings: BTreeMap<String, Vec<Event>>,
    /// Nodes, read only if a pod needs one.
    pub(super) nodes: Vec<Node>,
    /// Disruption budgets of the namespace.
    pub(super) budgets: Vec<Budget>,
    /// Pods, claims and revisions that can't be decoded.
    pub(super) unreadable: Vec<Unreadable>,
}
