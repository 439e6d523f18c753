//! Nodes.

use serde::Deserialize;

use super::{Condition, Metadata};

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: NodeSpec,
    status: NodeStatus,
}

/// The desired state of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// True if new pods are kept away.
    pub unschedulable: bool,
    /// Taints.
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key.
    pub key: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: Vec<Condition>,
}

impl Node {
    /// The `Ready` condition, unless it is true.
    pub fn not_ready(&self) -> Option<&Condition> {
        let ready = self.status.conditions.iter().find(|it| it.kind == "Ready");
        ready.filter(|ready| ready.status != "True")
    }
}
