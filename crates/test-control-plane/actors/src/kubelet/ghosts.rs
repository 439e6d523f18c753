//! Pods that are gone, and that a node which doesn't know that still runs.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::object::Key;

use super::Kubelet;
use super::container::Container;
use super::run::PodRun;

/// The pods that are gone and still run, by name.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// Their uids.
    uids: BTreeMap<Key, BTreeSet<Box<str>>>,
    /// Those of which it was said that they run beside another one, with that one's uid.
    told: BTreeSet<(Box<str>, Box<str>)>,
}

impl Ghosts {
    pub(super) fn insert(&mut self, key: &Key, uid: &str) {
        let uids = self.uids.entry(key.clone()).or_default();
        uids.insert(uid.into());
    }

    /// A pod runs no more.
    pub(super) fn remove(&mut self, run: &PodRun) {
        if let Some(uids) = self.uids.get_mut(&run.key) {
            uids.remove(&run.uid);
            if uids.is_empty() {
                self.uids.remove(&run.key);
            }
        }
        self.told.retain(|(ghost, _)| *ghost != run.uid);
    }
}

impl Kubelet {
    /// Notes if a pod runs beside another one of its name.
    pub(super) fn look_for_ghosts(&mut self, uid: &str) {
        let runs = |run: &&PodRun| run.containers.iter().any(Container::is_running);
        let Some(run) = self.runs.get(uid).filter(runs) else {
            return;
        };
        let ghosts = self.ghosts.uids.get(&run.key).into_iter().flatten();
        for ghost in ghosts.filter_map(|uid| self.runs.get(uid)).filter(runs) {
            if self
                .ghosts
                .told
                .insert((ghost.uid.clone(), run.uid.clone()))
            {
                let message = format!(
                    "two pods {}/{} run at a time: {} on node {}, {} on node {}",
                    run.key.namespace, run.key.name, ghost.uid, ghost.node, run.uid, run.node
                );
                self.invariants.record(self.client.server.now(), message);
            }
        }
    }
}
