//! The part of a collection that an informer caches.

use crate::rest::Selectors;
use crate::shard::Shard;

/// A namespace, a shard of all namespaces, or everything; of these, the selected objects.
pub(super) struct Scope {
    /// Empty for all namespaces.
    pub(super) namespace: String,
    /// `None` for all objects.
    pub(super) shard: Option<Shard>,
    pub(super) selectors: Selectors,
}

impl Scope {
    /// Returns the query parameter of lists and watches; empty for all objects.
    pub(super) fn shard_selector(&self) -> String {
        self.shard.map_or_else(String::new, Shard::selector)
    }

    /// Returns true for the namespaces of the shard. API servers that know no shards, or
    /// reject the selector, send the objects of all namespaces.
    pub(super) fn contains(&self, namespace: &str) -> bool {
        self.shard.is_none_or(|shard| shard.contains(namespace))
    }
}
