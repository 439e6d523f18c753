//! What the scheduler decides on a pod, and how it says so.

use std::collections::BTreeMap;

use serde_json::Value;

use kube_test_control_plane_api::object::Key;

/// What the scheduler decides on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes to this node.
    Node(String),
    /// It will go to this node, once its claims are bound.
    NodeOnceBound {
        node: String,
        /// Claims that have yet to be told of the node.
        select: Vec<Key>,
        /// Claims that have yet to be bound.
        wait: Vec<Key>,
    },
    /// It fits nowhere, and why.
    Nowhere(String),
    /// It fits nowhere as long as this claim is as it is.
    NowhereWithout(Key, String),
}

/// Reasons why other pods could make room for one, if they went.
const ROOM: [&str; 5] = [
    "Insufficient ",
    "Too many pods",
    "node(s) didn't have free ports",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
];

/// Why a pod fits on none of the nodes.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// On how many nodes each reason holds.
    counts: BTreeMap<String, usize>,
    nodes: usize,
    /// On how many of them other pods could make room.
    crowded: usize,
}

impl Reasons {
    /// Why it doesn't fit on one more node.
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

    /// All of it in words.
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

/// Why a pod fits on none of the nodes, for a reason that has nothing to do with them.
pub(super) fn unavailable_for(nodes: usize, reason: &str) -> String {
    format!(
        "0/{nodes} nodes are available: {reason}. no new claims to deallocate, preemption: \
         0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
    )
}

/// Whether a pod says already that it fits nowhere, and why.
pub(super) fn says(pod: &Value, message: &str) -> bool {
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
    fn reasons_are_counted() {
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
