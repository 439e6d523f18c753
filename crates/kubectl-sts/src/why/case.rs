//! A set with the snapshot of its objects, as the causes see it.

use crate::model::Set;
use crate::objects::Snapshot;

/// A set with the snapshot of its objects.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) set: &'a Set,
}

impl Case<'_> {
    /// A command in the set's namespace.
    pub(super) fn kubectl(self, rest: &str) -> String {
        format!("kubectl -n {} {rest}", self.snapshot.namespace)
    }

    /// The command that deletes a pod.
    pub(super) fn delete_pod(self, pod: &str) -> String {
        self.kubectl(&format!("delete pod {pod}"))
    }
}
