//! Deleted pods that a lost node still runs.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::object::Key;

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

    /// Returns the violations that a pod newly commits by running alongside another one with its name.
    pub(super) fn duplicates(
        &mut self,
        runs: &BTreeMap<Box<str>, PodRun>,
        uid: &str,
    ) -> Vec<String> {
        let is_running = |run: &&PodRun| run.containers.iter().any(Container::is_running);
        let Some(run) = runs.get(uid).filter(is_running) else {
            return Vec::new();
        };
        let lost_pods = self.uids.get(&run.key).into_iter().flatten();
        let lost_pods = lost_pods.filter_map(|uid| runs.get(uid)).filter(is_running);
        let reported = &mut self.reported;
        let new = lost_pods.filter(|lost| reported.insert((lost.uid.clone(), run.uid.clone())));
        let messages = new.map(|lost| {
            format!(
                "two pods {}/{} run at the same time: {} on node {}, {} on node {}",
                run.key.namespace, run.key.name, lost.uid, lost.node, run.uid, run.node
            )
        });
        messages.collect()
    }
}
