//! Deleted pods that a lost node still runs.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::object::Key;

use super::Kubelet;
use super::container::Container;
use super::run::PodRun;

/// The deleted pods that still run, by name.
#[derive(Debug, Default)]
pub(super) struct LostNodePods {
    /// Their uids.
    uids: BTreeMap<Key, BTreeSet<Box<str>>>,
    /// Reported pairs: the uid of a deleted pod and of the pod alongside which it runs.
    reported: BTreeSet<(Box<str>, Box<str>)>,
}

impl LostNodePods {
    pub(super) fn insert(&mut self, key: &Key, uid: &str) {
        let uids = self.uids.entry(key.clone()).or_default();
        uids.insert(uid.into());
    }

    /// Removes a pod that no longer runs.
    pub(super) fn remove(&mut self, run: &PodRun) {
        if let Some(uids) = self.uids.get_mut(&run.key) {
            uids.remove(&run.uid);
            if uids.is_empty() {
                self.uids.remove(&run.key);
            }
        }
        self.reported.retain(|(lost, _)| *lost != run.uid);
    }
}

impl Kubelet {
    /// Records a violation if a pod runs alongside another one with its name.
    pub(super) fn check_duplicate_runs(&mut self, uid: &str) {
        let runs = |run: &&PodRun| run.containers.iter().any(Container::is_running);
        let Some(run) = self.runs.get(uid).filter(runs) else {
            return;
        };
        let lost_pods = self.lost_node_pods.uids.get(&run.key).into_iter().flatten();
        for lost in lost_pods.filter_map(|uid| self.runs.get(uid)).filter(runs) {
            if self
                .lost_node_pods
                .reported
                .insert((lost.uid.clone(), run.uid.clone()))
            {
                let message = format!(
                    "two pods {}/{} run at the same time: {} on node {}, {} on node {}",
                    run.key.namespace, run.key.name, lost.uid, lost.node, run.uid, run.node
                );
                self.invariants.record(self.client.server.now(), message);
            }
        }
    }
}
