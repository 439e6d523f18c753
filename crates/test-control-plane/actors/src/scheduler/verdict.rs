//! The scheduler's decision on a pod, and its messages.

use std::collections::BTreeMap;

use serde_json::Value;

use kube_test_control_plane_api::object::Key;

/// The scheduler's decision on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Binds the pod to this node.
    Node(String),
    /// Chooses this node, and binds the pod after its claims.
    NodeOnceBound {
        node: String,
        /// Claims without the selected node yet.
        select: Vec<Key>,
        /// Unbound claims.
        wait: Vec<Key>,
    },
    /// Unschedulable for this reason.
    Nowhere(String),
    /// Unschedulable until this claim changes, for this reason.
    NowhereWithout(Key, String),
}

/// Reasons that the removal of other pods could resolve.
const ROOM: [&str; 5] = [
    "Insufficient ",
    "Too many pods",
    "node(s) didn't have free ports",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
];

/// Reasons against all nodes for a pod.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// Number of nodes by reason.
    counts: BTreeMap<String, usize>,
    nodes: usize,
    /// Number of nodes where the removal of pods could help.
    crowded: usize,
}

impl Reasons {
    /// Counts the reasons of one more node.
    pub(super) fn add(&mut self, reasons: Vec<String>) {
        let spread = "node(s) didn't match pod topology spread constraints";
        let is_room = |reason: &String| {
            reason == spread || ROOM.iter().any(|start| reason.starts_with(start))
        };
        self.nodes += 1;
        self.crowded += usize::from(reasons.iter().all(is_room));
        for reason in reasons {
            *self.counts.entry(reason).or_default() += 1;
        }
    }

    /// Formats the full message.
    pub(super) fn unavailable(&self) -> String {
        let (nodes, room) = (self.nodes, self.crowded);
        if nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut list: Vec<String> = self
            .counts
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        list.sort();
        let mut help = Vec::new();
        if room > 0 {
            help.push(format!(
                "{room} No preemption victims found for incoming pod"
            ));
        }
        if nodes > room {
            let others = nodes - room;
            help.push(format!("{others} Preemption is not helpful for scheduling"));
        }
        format!(
            "0/{nodes} nodes are available: {}. no new claims to deallocate, preemption: \
             0/{nodes} nodes are available: {}.",
            list.join(", "),
            help.join(", ")
        )
    }
}

/// Formats the message for a reason that is unrelated to the nodes.
pub(super) fn unavailable_for(nodes: usize, reason: &str) -> String {
    format!(
        "0/{nodes} nodes are available: {reason}. no new claims to deallocate, preemption: \
         0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
    )
}

/// Reports whether a pod's status already has this message.
pub(super) fn has_message(pod: &Value, message: &str) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let scheduled = conditions.find(|condition| condition["type"] == "PodScheduled");
    scheduled.is_some_and(|condition| {
        condition["reason"] == "Unschedulable" && condition["message"] == message
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_counts_nodes_by_reason() {
        let mut reasons = Reasons::default();
        reasons.add(vec!["Insufficient cpu".to_owned()]);
        reasons.add(vec!["Insufficient cpu".to_owned()]);
        reasons.add(vec!["node(s) were unschedulable".to_owned()]);
        assert_eq!(
            reasons.unavailable(),
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new \
             claims to deallocate, preemption: 0/3 nodes are available: 2 No preemption victims \
             found for incoming pod, 1 Preemption is not helpful for scheduling."
        );
    }
}
