//! A set with the snapshot of its objects, as the causes see it.

use jiff::Timestamp;

use crate::model::{Pod, Revision, Set};
use crate::objects::Snapshot;

/// A set with the snapshot of its objects.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) set: &'a Set,
}

impl<'a> Case<'a> {
    /// A command in the set's namespace.
    pub(super) fn kubectl(self, rest: &str) -> String {
        format!("kubectl -n {} {rest}", self.snapshot.namespace)
    }

    /// The command that deletes a pod, unless it is being deleted. With a finalizer or on a lost
    /// node its deletion doesn't end by itself, so the command doesn't wait.
    pub(super) fn delete_pod(self, name: &str) -> Option<String> {
        self.delete_pods(&[name.to_owned()])
    }

    /// The command that deletes those of these pods that aren't being deleted.
    pub(super) fn delete_pods(self, names: &[String]) -> Option<String> {
        let pod = |name: &&String| self.snapshot.pod(name);
        let is_deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let is_slow = |pod: &Pod| !pod.metadata.finalizers.is_empty() || self.is_on_lost_node(pod);
        let left = names
            .iter()
            .filter(|name| !pod(name).is_some_and(is_deleted));
        let left: Vec<&String> = left.collect();
        if left.is_empty() {
            return None;
        }
        let waits = if left.iter().filter_map(pod).any(is_slow) {
            " --wait=false"
        } else {
            ""
        };
        let left: Vec<&str> = left.into_iter().map(String::as_str).collect();
        Some(self.kubectl(&format!("delete pod {}{waits}", left.join(" "))))
    }

    /// Reports whether the pod's node is not ready.
    pub(super) fn is_on_lost_node(self, pod: &Pod) -> bool {
        let node = self.snapshot.node(&pod.spec.node_name);
        node.is_some_and(|node| node.not_ready().is_some())
    }

    /// The latest revision before that of the template.
    pub(super) fn revision_before(self) -> Option<&'a Revision> {
        let update = &self.set.status.update_revision;
        let revisions = self.snapshot.revisions_of(self.set);
        let mut before = revisions.into_iter().rev();
        before.find(|revision| revision.metadata.name != *update)
    }

    /// The command that returns to a revision.
    pub(super) fn undo(self, revision: &Revision) -> String {
        let (set, number) = (&self.set.metadata.name, revision.revision);
        self.kubectl(&format!(
            "rollout undo statefulset/{set} --to-revision={number}"
        ))
    }

    /// Seconds from a moment to now.
    pub(super) fn seconds_since(self, moment: Timestamp) -> i64 {
        self.snapshot.now.duration_since(moment).as_secs()
    }

    /// The text of an event for evidence.
    pub(super) fn event(event: &crate::model::Event) -> String {
        let times = match event.times() {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        format!("event {}: {}{times}", event.reason, event.message)
    }
}
