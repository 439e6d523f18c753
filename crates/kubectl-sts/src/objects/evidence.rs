//! Objects that explain the state of sets.

use std::collections::BTreeMap;

use super::events::Events;
use crate::model::{Budget, Node, Volume};
use crate::server::Unreadable;

/// Objects that explain the state of sets, but don't decide about them.
#[derive(Default)]
pub(super) struct Evidence {
    pub(super) events: Events,
    /// Nodes, read only if a pod needs one.
    pub(super) nodes: Vec<Node>,
    /// Disruption budgets of the namespace.
    pub(super) budgets: Vec<Budget>,
    /// Volumes of the claims that are being deleted, by name.
    pub(super) volumes: BTreeMap<String, Volume>,
    /// Pods, claims and revisions that can't be decoded.
    pub(super) unreadable: Vec<Unreadable>,
}
