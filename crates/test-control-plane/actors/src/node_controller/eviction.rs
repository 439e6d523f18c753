//! Taint-based evictions and their times.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::clock::later;
use serde_json::Value;
use tokio::time::Instant;

use crate::nodes::taints::{self, Tolerance};

/// The `NoExecute` taints, and the pods waiting for eviction.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// By node.
    taints: BTreeMap<Box<str>, Vec<Value>>,
    /// Pods waiting for eviction, and the start of their wait.
    since: BTreeMap<Key, Instant>,
}

impl Evictions {
    /// Stores a node's taints. Returns true if the `NoExecute` taints changed.
    pub(super) fn taint(&mut self, node: &str, mut taints: Vec<Value>) -> bool {
        taints.retain(|taint| taints::has_effect(taint, "NoExecute"));
        let before = self.taints.get(node).map(Vec::as_slice).unwrap_or_default();
        if before == taints {
            return false;
        }
        if taints.is_empty() {
            self.taints.remove(node);
        } else {
            self.taints.insert(node.into(), taints);
        }
        true
    }

    pub(super) fn is_tainted(&self, node: &str) -> bool {
        self.taints.contains_key(node)
    }

    /// Returns the time of a pod's eviction; `None` if it may stay.
    pub(super) fn due(&mut self, key: &Key, node: &str, pod: &Value) -> Option<Instant> {
        let taints: Vec<&Value> = self.taints.get(node).into_iter().flatten().collect();
        match taints::tolerance(pod, &taints) {
            Tolerance::Forever => {
                self.since.remove(key);
                None
            }
            Tolerance::For(time) => {
                let since = *self.since.entry(key.clone()).or_insert_with(Instant::now);
                Some(later(since, time))
            }
        }
    }

    /// Drops a leaving pod.
    pub(super) fn forget(&mut self, key: &Key) {
        self.since.remove(key);
    }
}
