//! A question about a change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::cli::PlanArguments;
use crate::model::Set;
use crate::objects::Snapshot;

/// A question about a change of a set.
pub(super) struct Situation<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// The set and the objects that concern it; without the set, if it is new.
    pub(super) snapshot: &'a Snapshot,
    pub(super) now: Timestamp,
    pub(super) arguments: &'a PlanArguments,
    pub(super) file: Option<&'a Value>,
    /// Existence of the owners that are neither the set nor one of its pods, by uid.
    pub(super) owners: &'a BTreeMap<String, bool>,
    /// True if the namespace is being deleted.
    pub(super) namespace_ends: bool,
}

impl Situation<'_> {
    /// The existing set.
    pub(super) fn set(&self) -> Option<&Set> {
        self.snapshot.set.as_ref().map(|set| &set.object)
    }

    /// Reports whether the set or its namespace is being deleted.
    pub(super) fn is_ending(&self) -> bool {
        let is_deleted = |set: &Set| set.metadata.deletion_timestamp.is_some();
        self.namespace_ends || self.set().is_some_and(is_deleted)
    }
}
