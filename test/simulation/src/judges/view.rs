//! The knowledge of a sync.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::views::{Pod, Revision, Set};

/// Objects as a sync knew them.
pub struct View<'a> {
    /// The set.
    pub set: &'a Arc<Set>,
    /// The pods that belong to the set, by ordinal.
    pub members: BTreeMap<u32, &'a Arc<Pod>>,
    /// The revisions of the set, and orphans with a matching name.
    pub revisions: Vec<&'a Arc<Revision>>,
    /// The update revision, if it existed before the sync.
    pub update: Option<&'a Arc<Revision>>,
}
